// What the page does by itself: times that grow old without being sent again, and words that explain themselves.
import { computed, ref } from "vue";

const STEP_MS = 5000; // A time is told so coarsely that it need not be worked out more often.
const [MINUTE_S, HOUR_S, DAY_S] = [60, 3600, 86400];
const JUST_NOW_S = 10;
const LONGEST_MS = 8.64e15; // that a Date can hold
const ahead = ref(0); // The server's clock less this browser's, in milliseconds: a browser's may be wrong.
const now = ref(Date.now());
setInterval(() => (now.value = Date.now()), STEP_MS);

/** Takes in what time it is for the server, in seconds since 1970. */
export function setClock(seconds) {
  ahead.value = 1000 * seconds - Date.now();
  now.value = Date.now();
}

/** How long ago something was, or in how long it will be, in seconds; so coarse that it seldom changes. */
export function ago(seconds) {
  const span = Math.abs(seconds);
  if (span < JUST_NOW_S) return "now";
  let told = `${Math.floor(span / DAY_S)} d`;
  if (span < MINUTE_S) told = `${10 * Math.floor(span / 10)} s`;
  else if (span < HOUR_S) told = `${Math.floor(span / MINUTE_S)} min`;
  else if (span < DAY_S) told = `${Math.floor(span / HOUR_S)} h`;
  return seconds < 0 ? `in ${told}` : `${told} ago`;
}

/** A moment in the time zone of whoever looks, as ISO 8601 has it: 2026-12-01T16:04:05+01:00. */
export function exact(milliseconds) {
  const date = new Date(milliseconds);
  const zone = -date.getTimezoneOffset();
  const shifted = new Date(milliseconds + 60000 * zone).toISOString().replace(/\.\d+Z$/, "");
  const two = (number) => String(Math.floor(number)).padStart(2, "0");
  return `${shifted}${zone < 0 ? "-" : "+"}${two(Math.abs(zone) / 60)}:${two(Math.abs(zone) % 60)}`;
}

/** A time: "2 min ago", and the exact one when it is pointed at, tapped or has the focus. Null is not known. */
export const When = {
  props: { at: { type: Number, default: null } }, // seconds since 1970
  template: `
    <span v-if="told === null" class="sb-when">\u2013</span>
    <button v-else type="button" class="sb-when sb-told-by" :data-tip="told.exact" :aria-label="told.ago + ', ' + told.exact"
      ><time :datetime="told.exact">{{ told.ago }}</time></button>
  `,
  setup(props) {
    const told = computed(() => {
      const at = props.at === null ? NaN : 1000 * props.at;
      if (!(Math.abs(at) < LONGEST_MS - DAY_S * 1000)) return null;
      return { ago: ago((now.value + ahead.value - at) / 1000), exact: exact(at) };
    });
    return { told };
  },
};

// What can be asked for its meaning carries it itself, or the id of the element that does.
const LEAVING_MS = 200;
const ASKED = "[data-tip], [data-word]";

function meaningOf(element) {
  const { tip, word } = element.dataset;
  return tip ?? document.getElementById(word)?.textContent ?? "";
}

/** Shows in one element what whatever is pointed at, tapped or has the focus means. Returns what ends that. */
export function explainIn(box) {
  let shown = null;
  let pinned = false;
  let leaving = 0;

  function hide() {
    clearTimeout(leaving);
    shown?.removeAttribute("aria-describedby");
    const { word } = shown?.dataset ?? {};
    if (word) shown.setAttribute("aria-describedby", word);
    shown = null;
    pinned = false;
    if (box.matches(":popover-open")) box.hidePopover();
  }

  function show(element) {
    clearTimeout(leaving);
    if (shown !== element) hide();
    const meaning = meaningOf(element);
    if (!meaning) return;
    shown = element;
    box.textContent = meaning;
    element.setAttribute("aria-describedby", box.id);
    if (!box.matches(":popover-open")) box.showPopover();
    const [at, size] = [element.getBoundingClientRect(), box.getBoundingClientRect()];
    const left = Math.max(8, Math.min(at.left, document.documentElement.clientWidth - size.width - 8));
    const below = at.bottom + 6;
    const top = below + size.height < window.innerHeight ? below : Math.max(8, at.top - size.height - 6);
    Object.assign(box.style, { left: `${left}px`, top: `${top}px` });
  }

  const asked = (event) => event.target.closest?.(ASKED) ?? null;
  const pointedAt = (event) => asked(event) ?? event.target.closest?.("th")?.querySelector(ASKED) ?? null;
  const listeners = {
    click(event) {
      const element = asked(event);
      if (box.contains(event.target)) return;
      if (element === null || element.matches("a")) return hide();
      if (element.dataset.tip === undefined && !element.matches("button")) return;
      // Neither a row that leads somewhere, nor a header that sorts, is meant; to choose a row besides does no harm.
      event.preventDefault();
      if (!element.closest(".sb-clickable tbody")) event.stopPropagation();
      if (pinned && shown === element) return hide();
      show(element);
      pinned = true;
    },
    pointerover(event) {
      const element = pointedAt(event);
      if (event.pointerType === "touch" || pinned) return;
      if (element !== null) show(element);
      else if (box.contains(event.target)) clearTimeout(leaving);
    },
    pointerout(event) {
      if (event.pointerType === "touch" || pinned || shown === null || shown.contains(event.relatedTarget)) return;
      // Time to reach the box with the pointer, to read there, or to mark what it says.
      clearTimeout(leaving);
      leaving = setTimeout(hide, LEAVING_MS);
    },
    focusin(event) {
      const element = asked(event);
      if (element?.matches(":focus-visible")) show(element);
      else if (element !== shown) hide();
    },
    keydown(event) {
      if (event.key === "Escape") hide();
    },
    scroll(event) {
      if (shown !== null && !box.contains(event.target)) hide();
    },
  };
  for (const [name, listener] of Object.entries(listeners)) document.addEventListener(name, listener, true);
  return () => {
    for (const [name, listener] of Object.entries(listeners)) document.removeEventListener(name, listener, true);
  };
}
