"""The run of repeats an actor is in, to tell a circle of calls from the same call again."""

from attrs import define, field

LONGEST = 24


@define
class Circle:
    """The latest repeats by key, oldest first."""

    recent: list[int] = field(factory=list[int])

    def add(self, key: int) -> None:
        self.recent.append(key)
        if len(self.recent) > 3 * LONGEST:
            del self.recent[:LONGEST]

    def period(self) -> int:
        """After how many repeats the same ones come again, 0 if they do not."""
        recent = self.recent
        for period in range(1, min(LONGEST, len(recent) // 2) + 1):
            if recent[-period:] == recent[-2 * period : -period]:
                return period
        return 0

    def members(self) -> list[int]:
        period = self.period()
        return self.recent[-period:] if period else []
