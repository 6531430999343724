// Names that the data does not know, below what was asked: where nothing was found, they are perhaps why.
import { nameWarnings } from "./sql.ts";
import { useLoaded } from "./ui.tsx";

export function NameWarnings({ sql, database, container, parameters }: { sql: string; database: string; container: string; parameters: string[] }) {
  const { value } = useLoaded(() => nameWarnings(sql, { database, container, parameters }), [sql, database, container, parameters.join()]);
  return value?.length ? <div class="notice" role="status">{[...new Set(value.map((warning) => warning.message))].map((message) => <div key={message}>{message}</div>)}</div> : null;
}
