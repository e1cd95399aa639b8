// The status page: asks for numbers every five seconds and draws one bar for each kind.

const REFRESH_MS = 5000;

async function refreshStatus() {
  const answer = await fetch("/numbers.json");
  if (!answer.ok) {
    showBanner("no worker has been seen lately");
    return;
  }
  drawBars(await answer.json());
}

function drawBars(numbers) {
  // Bars share one scale, so that kinds can be compared at a glance.
  const largest = Math.max(1, ...numbers.map((n) => n.waiting));
  for (const n of numbers) {
    document.getElementById(n.kind).style.width = `${(100 * n.waiting) / largest}%`;
  }
}

setInterval(refreshStatus, REFRESH_MS);
