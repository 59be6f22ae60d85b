// A time on its own; in a table, `live_table.js` has it.
export { When as default } from "springback-live";
