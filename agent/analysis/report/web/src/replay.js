// The run as it was after so many events. Ids count up in the order of recording, so what was there is a beginning.

export function replay(facts) {
  const { moments, nodes } = facts;
  const counts = [];
  const steps = [];
  moments.forEach((moment, at) => {
    if (moment.kind === "added") steps.push(at + 1);
    counts.push(steps.length);
  });
  const nodesAt = (step) => (step > 0 ? counts[step - 1] : 0);
  const references = facts.references.map(([from, to]) => ({ from, to, step: beginOf(from, to) }));
  const best = bestSoFar(moments, nodes);

  function beginOf(from, to) {
    if (nodes[to].parents.includes(from)) return steps[to];
    return moments.findIndex((m) => m.kind === "merged" && m.at === from && m.node === to) + 1;
  }

  return {
    length: moments.length,
    nodesAt,
    stepOf: (id) => steps[id],
    bestAt: (step) => (step > 0 ? best[step - 1] : null),
    referencesAt: (step) => references.filter((each) => each.step <= step),
    momentAt: (step) => moments[step - 1] ?? null,
  };
}

function bestSoFar(moments, nodes) {
  let best = null;
  return moments.map((moment) => {
    const better = best === null || nodes[moment.node]?.value > nodes[best].value;
    if (moment.kind === "added" && better) best = moment.node;
    return best;
  });
}
