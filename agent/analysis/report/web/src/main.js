// Begins the page that this file is.
import { showBatch } from "./batch-page.js";
import { readFacts } from "./facts.js";
import { showTree } from "./tree-page.js";

const PAGES = { tree: showTree, batch: showBatch };

// For the console: `ramify.drawing.where(12)` says where state 12 is drawn.
globalThis.ramify = PAGES[document.body.dataset.page](readFacts());
