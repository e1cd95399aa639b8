// What a page asks for again and again while it is looked at, never once more before the answer has come.

import { useEffect, useRef } from "preact/hooks";

/** Do `look()` now, and `wait` milliseconds after each answer. */
export function useAgain(look, wait) {
  const latest = useRef(look);
  latest.current = look;
  useEffect(() => {
    let timer = 0;
    let gone = false;
    const once = async () => {
      await latest.current();
      if (!gone) timer = setTimeout(later, wait);
    };
    const later = () => {
      if (document.hidden) timer = setTimeout(later, wait);
      else once();
    };
    once();
    return () => {
      gone = true;
      clearTimeout(timer);
    };
  }, []);
}
