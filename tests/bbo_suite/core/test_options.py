from dataclasses import dataclass
from typing import Literal

import pytest

from bbo_suite import NoOptions, UserError, option
from bbo_suite.core.options import describe, parse


@dataclass(frozen=True)
class Options:
    size: int = option(3, "how many", low=1, high=10)
    rate: float = option(0.5, "how fast", low=0)
    depth: float = option(1.0, "how deep", high=9)
    bold: bool = option(False, "whether to be bold")
    mode: Literal["near", "far"] = option("near", "where to look")
    name: str = option("x", "what to call it")


def test_texts_become_values():
    texts = {"size": "7", "rate": "1e3", "bold": "Yes", "mode": "far", "name": "a=b c"}
    assert parse(Options, texts, "mine") == Options(7, 1000.0, 1.0, True, "far", "a=b c")
    assert parse(Options, {}, "mine") == Options()
    assert parse(NoOptions, {}, "mine") == NoOptions()


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("size", "2.5", "option size of mine must be of type int, not '2.5'"),
        ("size", "", "of type int"),
        ("size", "9" * 5000, "of type int"),
        ("size", "0", "between 1 and 10, not 0"),
        ("rate", "-1", "must be 0 or more, not -1"),
        ("rate", "inf", "0 or more, not inf"),
        ("rate", "nan", "0 or more, not nan"),
        ("depth", "9.5", "9 or less"),
        ("bold", "maybe", "of type bool"),
        ("mode", "Far", "must be near or far, not 'Far'"),
        ("sice", "1", "no option 'sice'. Did you mean 'size'?"),
    ],
)
def test_invalid_text_is_refused(name, text, words):
    with pytest.raises(UserError) as caught:
        parse(Options, {name: text}, "mine")
    assert words in str(caught.value)


def test_description():
    described = {entry["name"]: entry for entry in describe(Options)}
    assert described["size"] == {"name": "size", "type": "int", "default": 3, "help": "how many"}
    assert described["mode"]["type"] == "near or far"
    assert list(described) == ["size", "rate", "depth", "bold", "mode", "name"]
    assert describe(NoOptions) == []


def test_options_that_are_not_a_dataclass_are_refused():
    with pytest.raises(UserError, match="dataclass"):
        parse(int, {}, "mine")
