import os
import pickle
import struct

import numpy as np
import pytest

from sparsact.datasets import load_cifar10
from sparsact.datasets.images import TEST, TRAIN, cifar10_missing, decoded

needs_data = pytest.mark.skipif(
    "SPARSACT_DATA" not in os.environ, reason="SPARSACT_DATA does not name a folder with the real data"
)
NAMES = (*TRAIN, TEST)
PER_BATCH = 3


@needs_data
def test_the_real_set_has_the_known_means_and_labels():
    data = load_cifar10()
    assert data.train_images.shape == (50_000, 3, 32, 32)
    assert data.test_images.shape == (10_000, 3, 32, 32)
    means = data.train_images.mean(axis=(0, 2, 3)) / 255
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


def write_pickle(path, images, labels):
    path.write_bytes(pickle.dumps({"data": images.reshape(len(images), -1), "labels": labels.tolist()}, protocol=2))


def write_python_2(path, images, labels):
    """The opcodes of the original files: texts of Python 2, NumPy's names of that time."""
    m, pixels = images.reshape(len(images), -1).shape
    data = images.tobytes()
    array = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tU\x01btR"
    dtype = b"cnumpy\ndtype\n(U\x02u1K\x00K\x01tR(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    shape = b"(K" + bytes([m]) + b"M" + struct.pack("<H", pixels) + b"t"
    state = b"(K\x01" + shape + dtype + b"\x89T" + struct.pack("<I", len(data)) + data + b"tb"
    numbers = b"](" + b"".join(b"K" + bytes([label]) for label in labels) + b"e"
    path.write_bytes(b"\x80\x02}(U\x04data" + array + state + b"U\x06labels" + numbers + b"u.")


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
    return int(np.median([left, above, left + above - corner]))


WRITERS = {
    "binary": ("cifar-10-batches-bin", write_bin),
    "compressed": ("cifar10", write_npz),
    "pickles": ("cifar-10-batches-py", write_pickle),
    "pickles of Python 2": ("cifar-10-batches-py", write_python_2),
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
    with pytest.raises(ValueError, match=r"data_batch_2.bin is not a batch of CIFAR-10 .*fetch it anew"):
        load_cifar10(home)
    write_bin(file, batches[0][1], batches[1][1] + 10)
    with pytest.raises(ValueError, match=r"data_batch_2.bin holds .* labels 0 to 9: fetch it anew"):
        load_cifar10(home)


@pytest.mark.parametrize("cut", [0, 1, 100, 5000])
@pytest.mark.parametrize("form", ["compressed", "pickles", "pickles of Python 2"])
def test_a_file_cut_short(tmp_path, batches, form, cut):
    write = WRITERS[form][1]
    for name, images, labels in zip(NAMES, *batches, strict=True):
        write(tmp_path / name, images, labels)
    (file,) = tmp_path.glob("test_batch*")
    file.write_bytes(file.read_bytes()[:cut])
    with pytest.raises(ValueError, match=r"test_batch.* is not a batch of CIFAR-10 .*fetch it anew"):
        load_cifar10(tmp_path)


class Program:
    """What a pickle would run."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_a_pickle_that_holds_a_program_is_refused_and_does_not_run(tmp_path, batches):
    for name, images, labels in zip(NAMES, *batches, strict=True):
        write_pickle(tmp_path / name, images, labels)
    (tmp_path / "data_batch_1").write_bytes(pickle.dumps({"data": Program(tmp_path / "made"), "labels": [1]}))
    with pytest.raises(ValueError, match=r"data_batch_1 is not a batch of CIFAR-10 \(it wants to call posix.mkdir"):
        load_cifar10(tmp_path)
    assert not (tmp_path / "made").exists()


def test_a_pickle_of_numbers_that_are_not_bytes(tmp_path, batches):
    for name, images, labels in zip(NAMES, *batches, strict=True):
        write_pickle(tmp_path / name, images.astype(np.float64), labels)
    with pytest.raises(ValueError, match="not an array of bytes"):
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
