import os

import numpy as np
import pytest

from sparsact_papers.data import load_cifar10
from sparsact_papers.data.files import TEST, TRAIN, cifar10_missing, decoded

needs_data = pytest.mark.skipif(
    not os.environ.get("SPARSACT_DATA"), reason="SPARSACT_DATA does not name a folder with the real data"
)
NAMES = (*TRAIN, TEST)
PER_BATCH = 3


@needs_data
def test_the_real_set_has_the_known_means_and_labels():
    data = load_cifar10()
    assert data.train_images.shape == (50_000, 3, 32, 32)
    assert data.test_images.shape == (10_000, 3, 32, 32)
    means = data.train_images.mean(axis=(0, 2, 3)) / 255
    # With these published constants public code for CIFAR-10 normalises its channels.
    np.testing.assert_allclose(means, [0.49139968, 0.48215841, 0.44653091], atol=5e-9)
    assert set(np.bincount(data.train_labels)) == {5000}
    assert set(np.bincount(data.test_labels)) == {1000}
    assert [data.classes[i] for i in data.train_labels[:4]] == ["frog", "truck", "truck", "deer"]


@pytest.fixture
def batches():
    """Six batches of made-up images."""
    rng = np.random.default_rng([0, 1])
    images = rng.integers(256, size=(6, PER_BATCH, 3, 32, 32), dtype=np.uint8)
    return images, rng.integers(10, size=(6, PER_BATCH), dtype=np.uint8)


def write_bin(path, images, labels):
    records = np.column_stack([labels, images.reshape(len(images), -1)])
    path.with_suffix(".bin").write_bytes(records.tobytes())


def write_npz(path, images, labels):
    np.savez_compressed(path.with_suffix(".npz"), residual=encoded(images), labels=labels)


def encoded(images):
    """Residuals by the definition, a pixel at a time."""
    residual = np.empty_like(images)
    for image, errors in zip(images.astype(int), residual, strict=True):
        for c, channel in enumerate(image):
            for i in range(channel.shape[0]):
                for j in range(channel.shape[1]):
                    errors[c, i, j] = (channel[i, j] - predicted(channel, i, j)) % 256
        errors[[0, 2]] -= errors[1]
    return residual


def predicted(channel, i, j):
    if i == 0:
        return channel[0, j - 1] if j else 0
    if j == 0:
        return channel[i - 1, 0]
    left, above, corner = channel[i, j - 1], channel[i - 1, j], channel[i - 1, j - 1]
    return sorted((left, above, left + above - corner))[1]


WRITERS = {
    "binary": ("cifar-10-batches-bin", write_bin),
    "compressed": ("cifar10", write_npz),
    "binary, in the folder itself": (".", write_bin),
}


@pytest.mark.parametrize("form", WRITERS)
def test_every_form_gives_the_images_and_labels_in_order(tmp_path, batches, form):
    home, write = WRITERS[form]
    (tmp_path / home).mkdir(exist_ok=True)
    for name, images, labels in zip(NAMES, *batches, strict=True):
        write(tmp_path / home / name, images, labels)
    assert cifar10_missing(tmp_path) is None
    images, labels = batches
    data = load_cifar10(tmp_path)
    np.testing.assert_array_equal(data.train_images, images[:5].reshape(15, 3, 32, 32))
    np.testing.assert_array_equal(data.train_labels, labels[:5].ravel())
    np.testing.assert_array_equal(data.test_images, images[5])
    np.testing.assert_array_equal(data.test_labels, labels[5])
    part = load_cifar10(tmp_path, n_train=4, n_test=2)
    np.testing.assert_array_equal(part.train_images, data.train_images[:4])
    np.testing.assert_array_equal(part.train_labels, data.train_labels[:4])
    np.testing.assert_array_equal(part.test_images, data.test_images[:2])


@pytest.fixture
def home(tmp_path, batches):
    """A folder with the binary version."""
    for name, images, labels in zip(NAMES, *batches, strict=True):
        write_bin(tmp_path / name, images, labels)
    return tmp_path


@pytest.mark.parametrize("wanted", [0, 5 * PER_BATCH + 1])
def test_more_images_than_there_are(home, wanted):
    with pytest.raises(ValueError, match=f"{wanted} images are wanted; .* hold 1 to "):
        load_cifar10(home, n_train=wanted)


def test_an_absent_file_is_told_with_the_remedy(home, monkeypatch):
    (home / "data_batch_4.bin").unlink()
    monkeypatch.setenv("SPARSACT_DATA", str(home))
    with pytest.raises(FileNotFoundError, match=r"no complete CIFAR-10 in .*need data_batch_1 .*set SPARSACT_DATA"):
        load_cifar10()
    assert "set SPARSACT_DATA" in cifar10_missing()


def test_a_damaged_binary_file(home, batches):
    file = home / "data_batch_2.bin"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"data_batch_2.bin is not a batch of CIFAR-10 .*fetch it again"):
        load_cifar10(home)
    write_bin(file, batches[0][1], batches[1][1] + 10)
    with pytest.raises(ValueError, match=r"data_batch_2.bin holds .* labels 0 to 9: fetch it again"):
        load_cifar10(home)


@pytest.mark.parametrize("cut", [0, 1, 100, 5000])
def test_a_file_cut_short(tmp_path, batches, cut):
    for name, images, labels in zip(NAMES, *batches, strict=True):
        write_npz(tmp_path / name, images, labels)
    (file,) = tmp_path.glob("test_batch*")
    file.write_bytes(file.read_bytes()[:cut])
    with pytest.raises(ValueError, match=r"test_batch.* is not a batch of CIFAR-10 .*fetch it again"):
        load_cifar10(tmp_path)


def test_pickles_are_not_read(tmp_path):
    for name in NAMES:
        (tmp_path / name).write_bytes(b"cos\nsystem\n(S'exit 1'\ntR.")
    with pytest.raises(FileNotFoundError, match="pickles are not read"):
        load_cifar10(tmp_path)


def test_a_file_that_unpacks_to_more_than_a_batch(tmp_path, batches):
    for name, images, labels in zip(NAMES, *batches, strict=True):
        write_npz(tmp_path / name, images, labels)
    np.savez_compressed(tmp_path / "test_batch.npz", residual=np.zeros((40_000, 3, 32, 32), np.uint8), labels=labels)
    with pytest.raises(ValueError, match=r"test_batch.npz is not a batch .*bytes unpacked"):
        load_cifar10(tmp_path)


def test_decoding_undoes_the_definition_at_any_size():
    images = np.random.default_rng([0, 2]).integers(256, size=(5, 3, 4, 7), dtype=np.uint8)
    images[0] = 255  # no wrong sign at the ends of the range
    images[1] = 0
    residual = encoded(images)
    before = residual.copy()
    np.testing.assert_array_equal(decoded(residual), images)
    np.testing.assert_array_equal(residual, before)
    with pytest.raises(ValueError, match="need residuals"):
        decoded(images[0])
