"""Whether one text repeats itself: the model has got stuck inside a reply.

Two ways to be stuck: one block of text over and over (found by looking for the last words a little further up),
and a handful of sentences in any order. Rules drawn in characters and table rows are not sentences: what repeats
has to have words.
"""

from .verdicts import Evidence, Stop

_EVERY = 256
"""Characters between two looks."""
_WINDOW = 4096
_PROBE = 24
_STRIDE = 512
_ENOUGH = ((400, 8), (600, 5), (1800, 3))
"""A chant is this many characters long and has this many rounds; the longer it is, the fewer."""
_MIN_SPAN = _ENOUGH[0][0]
_SENTENCES = 24


class ChantGuard:
    """Watches one stream. Owned by the task that reads it; feeding costs nothing until enough has come."""

    __slots__ = ("_fresh", "_parts", "_tail", "stopped")

    def __init__(self) -> None:
        self._tail = ""
        self._parts: list[str] = []
        self._fresh = 0
        self.stopped: Stop | None = None

    def feed(self, piece: str) -> Stop | None:
        """Take in the next piece of text. Returns why the stream should be cut, once it should."""
        self._parts.append(piece)
        self._fresh += len(piece)
        return self.stopped if self._fresh < _EVERY else self._look()

    def _look(self) -> Stop | None:
        if self.stopped is not None:
            return self.stopped
        known = len(self._tail)
        text = self._tail + "".join(self._parts)
        self._parts.clear()
        self._fresh = 0
        # A long piece is looked at step by step, so that a chant in its middle is not missed.
        for end in (*range(known + _STRIDE, len(text), _STRIDE), len(text)):
            window = text[max(0, end - _WINDOW) : end]
            found = repeated_block(window) or repeated_sentences(window)
            if found is not None:
                block, times = found
                words = " ".join(block.split())
                words = words if len(words) <= 80 else words[:79] + "…"
                why = f'the reply repeats itself: "{words}" {times} times'
                self.stopped = Stop(why, Evidence("chant", (), times, words))
                return self.stopped
        self._tail = text[-_WINDOW:]
        return None


def chants(text: str) -> Stop | None:
    """Whether a whole reply repeats itself."""
    if len(text) < _MIN_SPAN:
        return None
    return ChantGuard().feed(text)


def repeated_block(text: str) -> tuple[str, int] | None:
    """The block the text ends with over and over, and how many times, if that is long enough to be a chant."""
    if len(text) < _MIN_SPAN:
        return None
    probe = text[-_PROBE:]
    before = len(text) - _PROBE
    for _ in range(4):  # The last words may come more than once within one block.
        before = text.rfind(probe, 0, before + _PROBE - 1)
        if before < 0:
            return None
        period = len(text) - _PROBE - before
        span = _common_tail(text[:-period], text) + period
        times = span // period
        enough = any(span >= length and times >= often for length, often in _ENOUGH)
        block = text[-period:]
        if enough and sum(map(str.isalpha, block)) * 2 >= period and len(set(block)) > 2:
            return block, times
    return None


def _common_tail(one: str, two: str) -> int:
    """How many characters two texts share at their ends."""
    low, high = 0, min(len(one), len(two))
    while low < high:
        middle = (low + high + 1) // 2
        if one[len(one) - middle :] == two[len(two) - middle :]:
            low = middle
        else:
            high = middle - 1
    return low


def repeated_sentences(text: str) -> tuple[str, int] | None:
    """The commonest sentence, if the text is made of very few of them."""
    if len(text) < 1200:
        return None
    sentences = [
        s for s in map(str.strip, text.replace(". ", "\n").split("\n")) if len(s) >= 16 and " " in s and s[0].isalpha()
    ]
    if len(sentences) < _SENTENCES or len(set(sentences)) * 6 > len(sentences):
        return None
    if sum(map(len, sentences)) * 2 < len(text):
        return None
    wordy = [s for s in sentences if sum(map(str.isalpha, s)) * 2 > len(s)]
    if len(wordy) * 2 < len(sentences):
        return None
    first = max(set(wordy), key=wordy.count)
    return first, wordy.count(first)
