// What each page has: the clock, the box in which words are explained, and the address that says what is shown.
import { explainIn, setClock } from "springback-live";

export default {
  template: `<div id="sb-tip" class="sb-tip" role="tooltip" popover="manual"></div>`,
  props: { now: Number },
  emits: ["query"],
  created() {
    setClock(this.now);
  },
  mounted() {
    this.endExplaining = explainIn(this.$el);
    this.tell = () => this.$emit("query", window.location.search);
    window.addEventListener("popstate", this.tell);
  },
  unmounted() {
    this.endExplaining();
    window.removeEventListener("popstate", this.tell);
  },
  methods: {
    // Where there was another address before, the browser's way back leads to it.
    address(query, kept) {
      const address = window.location.pathname + query;
      if (address === window.location.pathname + window.location.search) return;
      if (kept) window.history.pushState(null, "", address);
      else window.history.replaceState(null, "", address);
    },
  },
};
