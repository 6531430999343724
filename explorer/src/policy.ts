// Indexing policies: what one of them is with an index more.
import type { IndexingPolicy } from "./api.ts";

/** The policy with one index more. */
export function withSingle(policy: IndexingPolicy, path: string): IndexingPolicy {
  return { ...policy, indexingMode: "consistent", automatic: true,
    includedPaths: [...(policy.includedPaths ?? []).filter((p) => p.path !== path), { path }],
    excludedPaths: (policy.excludedPaths ?? []).filter((p) => p.path !== path) };
}
export function withComposite(policy: IndexingPolicy, specs: string[]): IndexingPolicy {
  const paths = specs.map((spec) => {
    const [path, order] = spec.trim().split(/\s+(?=(?:ASC|DESC)$)/i);
    return { path: path!, order: /^DESC/i.test(order ?? "") ? "descending" : "ascending" };
  });
  return { ...policy, compositeIndexes: [...(policy.compositeIndexes ?? []), paths] };
}
