"""Services of the live problems in the tests."""

import time

from supervised_targets import echo


def add(requests):
    """Answer the sum of two requests; one of them may ask for a fault."""
    answer = echo()

    def handler(request, enter):
        first, second = (requests[i] for i in request)
        for one in (first, second):
            if isinstance(one, tuple) and one[0] == "wrong":
                return "wrong_result", "it returns 1, not 2"
            if isinstance(one, tuple):
                answer(one, enter)
        return first + second if isinstance(first, int) and isinstance(second, int) else 9

    return handler


def slow(requests):
    """Answer the sum after a while."""
    handler = add(requests)
    return lambda request, enter: (time.sleep(0.03), handler(request, enter))[1]


def useless(requests):
    """Fail at every request."""
    return echo("no number")


def add_with_parts(requests):
    """Answer the sum, and if they are asked for, both numbers as parts."""
    handler = add(requests)

    def with_parts(request, enter):
        if request[0] != "parts":
            return handler(request, enter)
        numbers = [requests[i] for i in request[1]]
        whole = isinstance(outcome := handler(request[1], enter), int)
        return outcome, [(f"slot {i}", b"", 1.0, float(n)) for i, n in enumerate(numbers)] if whole else []

    return with_parts
