// Users of a database and what each may do; a permission's token is shown once it is asked for.
import { useState } from "preact/hooks";
import { canWrite, databasePath, list, segment, wire } from "./api.ts";
import { useDraft } from "./drafts.ts";
import { literal } from "./literal.ts";
import type { PanelProps } from "./shell.tsx";
import { overview } from "./state.ts";
import { Button, Dialog, Empty, Field, Problem, Waiting, ask, copyText, tellError, useLoaded } from "./ui.tsx";
import { Understanding } from "./value_box.tsx";

interface User {
  id: string;
  _etag: string;
}
interface Permission {
  id: string;
  permissionMode: string;
  resource: string;
  resourcePartitionKey?: unknown;
  _etag: string;
  _token: string;
}
const userPath = (database: string, user: string) => `${databasePath(database)}/users/${segment(user)}`;

export function Users({ tab }: PanelProps) {
  const { database } = tab;
  const { value: users, error, reload } = useLoaded(async () => list<User>(`${databasePath(database)}/users`), [database]);
  const { text: name, set: setName } = useDraft(tab, "user", "the name of a new user", "");
  const chosen = users?.find((user) => user.id === tab.state.user) ?? users?.[0];
  const [selected, setSelected] = useState<string | undefined>();
  const current = users?.find((user) => user.id === selected) ?? chosen;
  const create = async (event: Event) => {
    event.preventDefault();
    try {
      await wire("POST", `${databasePath(database)}/users`, { body: JSON.stringify({ id: name }) });
      setSelected(name);
      setName("");
    } catch (e) {
      tellError(e);
    }
    reload();
  };
  const remove = async (user: User) => {
    if (!(await ask(`Delete the user ${user.id}?`, "Tokens of this user stop working.", "Delete user"))) return;
    try {
      await wire("DELETE", userPath(database, user.id), { headers: { "if-match": user._etag } });
    } catch (e) {
      tellError(e);
    }
    reload();
  };
  return (
    <div class="page">
      <h1>Users of {database}</h1>
      <Problem error={error} />
      <div class="columns people">
        <section aria-label="Users">
          {canWrite() && <form class="row" onSubmit={create}><Field label="New user"><input value={name} onInput={(event) => setName(event.currentTarget.value)} /></Field><Button type="submit" icon="add" disabled={!name}>Add user</Button></form>}
          {!users && !error && <Waiting />}
          {users?.length === 0 && <Empty>No users. A user's permissions give tokens to programs that must not have the account's key.</Empty>}
          <ul class="plain-list choose">
            {users?.map((user) => (
              <li key={user.id}>
                <button type="button" aria-pressed={user.id === current?.id} onClick={() => setSelected(user.id)}>{user.id}</button>
                {canWrite() && <Button icon="trash" look="quiet" label={`Delete the user ${user.id}`} onClick={() => void remove(user)} />}
              </li>
            ))}
          </ul>
        </section>
        {current && <Permissions key={current.id} tab={tab} user={current.id} />}
      </div>
    </div>
  );
}

function Permissions({ tab, user }: PanelProps & { user: string }) {
  const { database } = tab;
  // Not before it is asked for: some names have no path.
  const base = () => `${userPath(database, user)}/permissions`;
  const { value, error, reload } = useLoaded(async () => list<Permission>(base()), [database, user]);
  const [adding, setAdding] = useState(false);
  const remove = async ({ id, _etag }: Permission) => {
    if (!(await ask(`Take the permission ${id} away?`, `${user} can no longer use it.`, "Delete permission"))) return;
    try {
      await wire("DELETE", `${base()}/${segment(id)}`, { headers: { "if-match": _etag } });
    } catch (e) {
      tellError(e);
    }
    reload();
  };
  return (
    <section aria-label={`Permissions of ${user}`}>
      <div class="row"><h2>Permissions of {user}</h2>{canWrite() && <Button icon="add" onClick={() => setAdding(true)}>Add permission</Button>}</div>
      <Problem error={error} />
      {!value && !error && <p class="hint" role="status">Loading…</p>}
      {value?.length === 0 && <p class="hint">None.</p>}
      <ul class="cards">
        {value?.map((permission) => (
          <li key={permission.id}>
            <div class="card-head"><strong>{permission.id}</strong><span class="badge">{permission.permissionMode}</span></div>
            <code>{permission.resource}</code>
            {permission.resourcePartitionKey !== undefined && <div class="muted">Partition key {JSON.stringify(permission.resourcePartitionKey)}</div>}
            <div class="row">
              <Button icon="copy" onClick={() => void copyText(permission._token, "Token")}>Copy token</Button>
              {canWrite() && <Button icon="trash" look="quiet" label={`Delete the permission ${permission.id}`} onClick={() => void remove(permission)} />}
            </div>
          </li>
        ))}
      </ul>
      {adding && <AddPermission tab={tab} user={user} base={base} onClose={() => { setAdding(false); reload(); }} />}
    </section>
  );
}

/** What is typed of a permission: a dialog that is closed by its cross or by Escape has it when it is opened again. */
interface NewPermission {
  id: string;
  mode: string;
  chosen: string;
  key: string;
}
const keyArray = (json: string) => (json.startsWith("[") ? json : `[${json}]`);
const NO_PERMISSION = JSON.stringify({ id: "", mode: "Read", chosen: "", key: "" });

function AddPermission({ tab, user, base, onClose }: PanelProps & { user: string; base: () => string; onClose: () => void }) {
  const { database } = tab;
  const containers = overview.value?.find((d) => d.id === database)?.containers ?? [];
  const { text: typed, set: setTyped, drop } = useDraft(tab, `permission.${user}`, `a new permission of ${user}`, NO_PERMISSION);
  const { id, mode, chosen, key } = JSON.parse(typed) as NewPermission;
  const set = (change: Partial<NewPermission>) => setTyped(JSON.stringify({ id, mode, chosen, key, ...change }));
  // The list may come, or grow, while the dialog is open.
  const container = chosen || (containers[0]?.id ?? "");
  const [error, setError] = useState("");
  const add = async () => {
    try {
      const keyText = key.trim() ? keyArray(literal(key, "The partition key")) : "";
      const body = `{"id":${JSON.stringify(id)},"permissionMode":${JSON.stringify(mode)},"resource":${JSON.stringify(`dbs/${database}/colls/${container}`)}${keyText ? `,"resourcePartitionKey":${keyText}` : ""}}`;
      await wire("POST", base(), { body });
      drop();
      onClose();
    } catch (e) {
      setError((e as Error).message);
    }
  };
  return (
    <Dialog title="Add permission" onClose={onClose} onSubmit={() => void add()} actions={<><Button onClick={() => { drop(); onClose(); }}>Cancel</Button><Button type="submit" look="primary" disabled={!id || !container}>Add</Button></>}>
      <Field label="Id"><input value={id} onInput={(event) => set({ id: event.currentTarget.value })} autofocus /></Field>
      <Field label="May"><select value={mode} onChange={(event) => set({ mode: event.currentTarget.value })}><option value="Read">read</option><option value="All">read and write</option></select></Field>
      <Field label="Container"><select value={container} onChange={(event) => set({ chosen: event.currentTarget.value })}>{containers.map((c) => <option key={c.id} value={c.id}>{c.id}</option>)}</select></Field>
      <Field label="Partition key" hint="Empty: the whole container. A key of several paths is an array."><input class="mono" value={key} onInput={(event) => set({ key: event.currentTarget.value })} placeholder="tenant-1" />{key.trim() && <Understanding typed={key} />}</Field>
      <Problem error={error} />
    </Dialog>
  );
}
