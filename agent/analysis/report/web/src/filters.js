// Which states a person wants to see: filters, and a text to look for. What does not fit is dimmed, not hidden.

export const STATES = ["solved", "better", "same", "worse", "invalid"];
export const MARKS = ["merged", "open", "pruned", "refused", "submitted", "failures", "compared"];

export const noFilters = {
  states: [],
  marks: [],
  actions: [],
  policies: [],
  kinds: [],
  rounds: [],
  low: null,
  high: null,
};

const some = (wanted, has) => !wanted.length || wanted.some((each) => has.includes(each));

export function fits(node, filters) {
  return (
    some(filters.states, [node.state]) &&
    some(filters.marks, node.marks) &&
    some(filters.actions, node.actions) &&
    some(filters.policies, [node.policy]) &&
    some(filters.kinds, [node.kind]) &&
    some(filters.rounds, [String(node.round)]) &&
    (filters.low === null || node.value >= filters.low) &&
    (filters.high === null || node.value <= filters.high)
  );
}

function looksFor(query) {
  const words = query.trim().toLowerCase().split(/\s+/).filter(Boolean);
  const number =
    words.length === 1 && /^#?\d+$/.test(words[0]) ? Number(words[0].replace("#", "")) : null;
  if (!words.length) return () => true;
  return (node, id) => id === number || words.every((word) => said(node).includes(word));
}

const texts = new WeakMap();

function said(node) {
  if (!texts.has(node)) {
    const { label, kind, policy, state, files, actions } = node;
    texts.set(node, [label, kind, policy, state, ...files, ...actions].join(" ").toLowerCase());
  }
  return texts.get(node);
}

// null: nothing is asked for, so nothing is dimmed.
export function matching(nodes, filters, query) {
  if (filters === noFilters && !query.trim()) return null;
  const found = looksFor(query);
  return new Set(nodes.flatMap((node, id) => (fits(node, filters) && found(node, id) ? [id] : [])));
}

export const values = (nodes, of) => [...new Set(nodes.flatMap(of))].filter(Boolean).sort();
