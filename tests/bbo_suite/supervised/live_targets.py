"""What the children of the tests' live problems serve."""

import time

from supervised_targets import echo


def add(deeds):
    """Answer the sum of two deeds, the first of which may be a misdeed."""
    answer = echo()

    def handler(request, enter):
        first, second = (deeds[i] for i in request)
        for deed in (first, second):
            if isinstance(deed, tuple) and deed[0] == "wrong":
                return "wrong_result", "it returns 1, not 2"
            if isinstance(deed, tuple):
                answer(deed, enter)
        return first + second if isinstance(first, int) and isinstance(second, int) else 9

    return handler


def slow(deeds):
    """Answer the sum after a while."""
    handler = add(deeds)
    return lambda request, enter: (time.sleep(0.03), handler(request, enter))[1]


def useless(deeds):
    """Fail whatever is asked."""
    return echo("no number")
