"""Lines of a log that end with a checksum of the text before it."""

import zlib


def sealed(text: str) -> str:
    """Return a line of text, which ends with a comma, with its checksum and a line's end."""
    return f"{text}{zlib.crc32(text.encode()):08x}\n"


def unsealed(line: str) -> str:
    """Return the text of a line, without its checksum.

    Raises:
      ValueError: the line is not one that `sealed` made.
    """
    text = line[:-9]
    if line != sealed(text):
        raise ValueError("its checksum does not match")
    return text
