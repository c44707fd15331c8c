"""What tests of several experiments share."""

import pytest

from sparsact_papers.common import characters


@pytest.fixture
def short_text(monkeypatch):
    """900 random letters in place of the text that the transformers learn."""
    torch = pytest.importorskip("torch")
    from sparsact_papers.training import CharacterText

    drawn = torch.randint(97, 104, (900,), generator=torch.Generator().manual_seed(0))
    made = CharacterText.of("".join(chr(character) for character in drawn))
    monkeypatch.setattr(characters, "text", lambda: made)
