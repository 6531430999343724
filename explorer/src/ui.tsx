// Small parts that every panel uses: icons, dialogs, messages, split panes, downloads.
import { signal } from "@preact/signals";
import type { ButtonHTMLAttributes, ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

const ICONS = {
  add: "M8 3v10M3 8h10",
  minus: "M3 8h10",
  close: "M4 4l8 8M12 4l-8 8",
  database: "M3 4.5c0-1.2 2.2-2 5-2s5 .8 5 2v7c0 1.2-2.2 2-5 2s-5-.8-5-2zM3 4.5c0 1.2 2.2 2 5 2s5-.8 5-2M3 8c0 1.2 2.2 2 5 2s5-.8 5-2",
  container: "M2.5 5l5.5-2.7L13.5 5v6L8 13.7 2.5 11zM2.5 5L8 7.7 13.5 5M8 7.7v6",
  items: "M2.5 3.5h11v9h-11zM2.5 6.5h11M6 6.5v6",
  query: "M3 4l4 4-4 4M8.5 12H13",
  settings: "M3 5h6M12 5h1M3 11h1M7 11h6M10.5 3.5v3M5.5 9.5v3",
  scripts: "M6 3c-2 0-2 1-2 2.5S4 8 2.5 8C4 8 4 9 4 10.5S4 13 6 13M10 3c2 0 2 1 2 2.5S12 8 13.5 8C12 8 12 9 12 10.5S12 13 10 13",
  partitions: "M3 13V8M6.3 13V3.5M9.7 13V6M13 13v-3",
  feed: "M3 8a5 5 0 0 1 5-5M3 12.5V8M8 3a5 5 0 1 1-4 8M8 5.5V8l2 1.5",
  users: "M8 8a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM3 13.5c.5-2.5 2.5-3.8 5-3.8s4.5 1.3 5 3.8",
  inspector: "M2.5 8h2.5l1.5-4 2.5 8 1.5-4h3",
  bulk: "M3 4h1M6 4h7M3 8h1M6 8h7M3 12h1M6 12h4",
  saved: "M4.5 2.5h7v11L8 10.8l-3.5 2.7z",
  menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
  run: "M5 3l8 5-8 5z",
  stop: "M4 4h8v8H4z",
  refresh: "M13 8a5 5 0 1 1-1.5-3.5M13 2.5v2.7h-2.7",
  link: "M6.5 9.5l3-3M7 4.5l1.5-1.5a2.5 2.5 0 0 1 3.5 3.5L10.5 8M9 11.5L7.5 13A2.5 2.5 0 0 1 4 9.5L5.5 8",
  copy: "M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8z",
  download: "M8 2.5v8M4.5 7.5L8 11l3.5-3.5M3 13.5h10",
  search: "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.3 10.3l3.2 3.2",
  upload: "M8 10.5V3M4.5 6.5L8 3l3.5 3.5M3 13.5h10",
  trash: "M3 4.5h10M6.5 4.5v-2h3v2M4.5 4.5l.6 9h5.8l.6-9",
  chevron: "M6 4l4 4-4 4",
  theme: "M8 2.5a5.5 5.5 0 1 0 0 11zM8 2.5a5.5 5.5 0 0 1 0 11",
  home: "M3 7.5L8 3l5 4.5V13H9.8V9.5H6.200V13H3z",
  more: "M4 8h.01M8 8h.01M12 8h.01",
  save: "M3 3h8l2 2v8H3zM5.5 3v3.5h4.5V3M5.5 13V9.5h5V13",
  columns: "M3 3h10v10H3zM6.3 3v10M9.7 3v10",
  back: "M10 4L6 8l4 4",
  out: "M6.5 3H3v10h3.5M6.5 8H13M10.5 5.5L13 8l-2.5 2.5",
} as const;
export type IconName = keyof typeof ICONS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <path d={ICONS[name]} fill={name === "run" || name === "stop" ? "currentColor" : "none"} stroke="currentColor" stroke-width={name === "more" ? 2.2 : 1.4} stroke-linecap="round" stroke-linejoin="round" />
    </svg>
  );
}

type ButtonProps = ButtonHTMLAttributes<HTMLButtonElement> & { icon?: IconName; look?: "primary" | "danger" | "quiet"; label?: string };
/** `label` names a button that shows only an icon. */
export function Button({ icon, look, label, children, class: extra, ...rest }: ButtonProps) {
  return (
    <button type="button" class={`button ${look ?? ""} ${children ? "" : "square"} ${String(extra ?? "")}`} aria-label={label} title={label} {...rest}>
      {icon && <Icon name={icon} />}
      {children}
    </button>
  );
}

interface Toast {
  key: number;
  text: string;
  bad: boolean;
}
const toasts = signal<Toast[]>([]);
let toastKey = 0;
export function tell(text: string, bad = false): void {
  const toast = { key: ++toastKey, text, bad };
  toasts.value = [...toasts.value.slice(-3), toast];
  setTimeout(() => (toasts.value = toasts.value.filter((other) => other !== toast)), bad ? 9000 : 4000);
}
export const tellError = (error: unknown) => tell(error instanceof Error ? error.message : String(error), true);
export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map((toast) => (
        <div key={toast.key} class={toast.bad ? "toast bad" : "toast"}>{toast.text}</div>
      ))}
    </div>
  );
}

interface DialogProps {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  actions?: ComponentChildren;
  wide?: boolean;
  onSubmit?: () => void;
}
export function Dialog({ title, onClose, children, actions, wide, onSubmit }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => element.current?.showModal(), []);
  return (
    <dialog ref={element} class={wide ? "dialog wide" : "dialog"} aria-label={title} onClose={onClose}>
      <form onSubmit={(event) => { event.preventDefault(); onSubmit?.(); }}>
        <header>
          <h2>{title}</h2>
          <Button icon="close" look="quiet" label="Close" onClick={onClose} />
        </header>
        <div class="dialog-body">{children}</div>
        {actions && <footer>{actions}</footer>}
      </form>
    </dialog>
  );
}

interface Question {
  title: string;
  text: string;
  confirm: string;
  danger: boolean;
  answer: (yes: boolean) => void;
}
const question = signal<Question | null>(null);
/** Asks before something that cannot be undone. */
export function ask(title: string, text: string, confirm: string, danger = true): Promise<boolean> {
  return new Promise((answer) => (question.value = { title, text, confirm, danger, answer }));
}
export function Questions() {
  const asked = question.value;
  if (!asked) return null;
  const close = (yes: boolean) => {
    question.value = null;
    asked.answer(yes);
  };
  return (
    <Dialog title={asked.title} onClose={() => close(false)} onSubmit={() => close(true)} actions={<>
      <Button onClick={() => close(false)}>Cancel</Button>
      <Button type="submit" look={asked.danger ? "danger" : "primary"}>{asked.confirm}</Button>
    </>}>
      <p class="pre">{asked.text}</p>
    </Dialog>
  );
}

export function Problem({ error }: { error: string }) {
  return error ? <div class="problem" role="alert">{error}</div> : null;
}
export function Waiting({ children = "Loading…" }: { children?: ComponentChildren }) {
  return <div class="waiting" role="status">{children}</div>;
}
/** Says that there is nothing: only after an answer that said so. */
export function Empty({ children }: { children: ComponentChildren }) {
  return <div class="empty">{children}</div>;
}
export function Field({ label, hint, children }: { label: string; hint?: string; children: ComponentChildren }) {
  return (
    <label class="field">
      <span>{label}</span>
      {children}
      {hint && <small>{hint}</small>}
    </label>
  );
}

/** A row of choices of which one is chosen, with the keys of tabs. */
export function Choices<T extends string>({ label, options, value, onChange }: { label: string; options: readonly (readonly [T, string])[]; value: T; onChange: (value: T) => void }) {
  const move = (event: KeyboardEvent) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!step) return;
    event.preventDefault();
    const next = (options.findIndex(([key]) => key === value) + step + options.length) % options.length;
    onChange(options[next]![0]);
    (event.currentTarget as HTMLElement).querySelectorAll("button")[next]?.focus();
  };
  return (
    <div class="choices" role="radiogroup" aria-label={label} onKeyDown={move}>
      {options.map(([key, text]) => (
        <button key={key} type="button" role="radio" aria-checked={key === value} tabIndex={key === value ? 0 : -1} onClick={() => onChange(key)}>{text}</button>
      ))}
    </div>
  );
}

/** What it is called, what it does, and how it looks: where one is now, or the first of others. */
export type MenuAction = readonly [string, () => void, ("" | "current" | "first")?];
/** A button that opens a list of actions, which closes when the focus leaves it. */
export function Menu({ label, icon, text, actions }: { label: string; icon?: IconName; text?: string; actions: readonly MenuAction[] }) {
  const [open, setOpen] = useState(false);
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!open) return;
    const away = (event: Event) => { if (!element.current?.contains(event.target as Node)) setOpen(false); };
    document.addEventListener("pointerdown", away);
    (element.current?.querySelector<HTMLElement>("[role=menuitem].current") ?? element.current?.querySelector<HTMLElement>("[role=menuitem]"))?.focus();
    return () => document.removeEventListener("pointerdown", away);
  }, [open]);
  const keys = (event: KeyboardEvent) => {
    const all = [...(element.current?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? [])];
    const at = all.indexOf(document.activeElement as HTMLElement);
    if (event.key === "Escape") { setOpen(false); element.current?.querySelector("button")?.focus(); event.stopPropagation(); }
    else if (event.key === "ArrowDown") all[(at + 1) % all.length]?.focus();
    else if (event.key === "ArrowUp") all[(at - 1 + all.length) % all.length]?.focus();
    else return;
    event.preventDefault();
  };
  return (
    <div class="menu" ref={element} onKeyDown={open ? keys : undefined} onFocusOut={(event) => { if (event.relatedTarget && !element.current?.contains(event.relatedTarget as Node)) setOpen(false); }}>
      <Button icon={icon} label={text ? undefined : label} aria-haspopup="menu" aria-expanded={open} onClick={() => setOpen(!open)}>{text}</Button>
      {open && (
        <div role="menu" aria-label={label}>
          {actions.map(([name, action, look], index) => (
            <button key={index} type="button" role="menuitem" class={look} tabIndex={-1} onClick={() => { setOpen(false); action(); }}>{name}</button>
          ))}
        </div>
      )}
    </div>
  );
}

/** Two panes with a bar between them that mouse and arrow keys move; without a second one the first has all the room, and keeps its state. */
export function Split({ name, direction, first, second, initial = 50 }: { name: string; direction: "row" | "column"; first: ComponentChildren; second: ComponentChildren | null; initial?: number }) {
  const [share, setShare] = useState(initial);
  const element = useRef<HTMLDivElement>(null);
  const set = (value: number) => setShare(Math.min(85, Math.max(15, value)));
  const drag = (down: PointerEvent) => {
    const bar = down.currentTarget as HTMLElement;
    bar.setPointerCapture(down.pointerId);
    const box = element.current!.getBoundingClientRect();
    bar.onpointermove = (event) => set(direction === "row" ? ((event.clientX - box.left) / box.width) * 100 : ((event.clientY - box.top) / box.height) * 100);
    bar.onpointerup = () => (bar.onpointermove = bar.onpointerup = null);
  };
  const keys = (event: KeyboardEvent) => {
    const step = { ArrowLeft: -4, ArrowUp: -4, ArrowRight: 4, ArrowDown: 4 }[event.key];
    if (step) { event.preventDefault(); set(share + step); }
  };
  return (
    <div class={direction === "row" ? "split across" : "split down"} ref={element}>
      <div class="pane" style={{ flexBasis: second ? `${share}%` : "100%" }}>{first}</div>
      {second && <div class="bar" role="separator" tabIndex={0} aria-label={`Size of ${name}`} aria-orientation={direction === "row" ? "vertical" : "horizontal"} aria-valuenow={Math.round(share)} aria-valuemin={15} aria-valuemax={85} onPointerDown={drag} onKeyDown={keys} />}
      {second && <div class="pane" style={{ flexBasis: `${100 - share}%` }}>{second}</div>}
    </div>
  );
}

export function download(name: string, parts: BlobPart[], type: string): void {
  const anchor = document.createElement("a");
  anchor.href = URL.createObjectURL(new Blob(parts, { type }));
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(anchor.href), 10_000);
}

export async function copyText(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    tell(`${what} copied.`);
  } catch {
    // Pages over plain HTTP that are not on loopback have no clipboard.
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
    tell(`${what} copied.`);
  }
}

export const count = (value: number | null) => (value === null ? "?" : value.toLocaleString("en-US"));
/**
 * Sizes as the service counts them and the shell shows them: in KB of 1,024 bytes, each one that was begun; from ten thousand of them on in
 * larger units of the same kind.
 */
export function size(bytes: number | null): string {
  if (bytes === null) return "?";
  if (bytes < 1024) return `${count(Math.round(bytes))} B`;
  const units = ["KB", "MB", "GB", "TB"];
  let [unit, amount] = [0, bytes / 1024];
  while (amount >= 10_000 && unit < units.length - 1) { amount /= 1024; unit++; }
  return `${unit === 0 ? count(Math.ceil(amount)) : amount.toLocaleString("en-US", { maximumFractionDigits: 1 })} ${units[unit]}`;
}
export const units = (charge: number) => `${charge.toLocaleString("en-US", { maximumFractionDigits: 2 })} RU`;
export const duration = (milliseconds: number) => (milliseconds < 1000 ? `${Math.round(milliseconds)} ms` : `${(milliseconds / 1000).toFixed(2)} s`);

/** What a promise gives, as state; asked again whenever `inputs` change. */
export function useLoaded<T>(load: () => Promise<T>, inputs: unknown[]): { value: T | undefined; error: string; reload: () => void } {
  const [state, setState] = useState<{ value: T | undefined; error: string }>({ value: undefined, error: "" });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    let current = true;
    load().then(
      (value) => current && setState({ value, error: "" }),
      (error: unknown) => current && setState((old) => ({ ...old, error: error instanceof Error ? error.message : String(error) })),
    );
    return () => void (current = false);
  }, [...inputs, turn]);
  return { ...state, reload: () => setTurn((t) => t + 1) };
}

/** Calls `poll` now and every `milliseconds` while the page is visible; an answer that is not `wanted` any more must not be shown. */
export function usePolling(poll: (wanted: () => boolean) => Promise<void> | void, milliseconds: number, inputs: unknown[]): void {
  useEffect(() => {
    let timer = 0;
    let stopped = false;
    const turn = async () => {
      if (document.visibilityState === "visible") await poll(() => !stopped);
      if (!stopped) timer = window.setTimeout(turn, milliseconds);
    };
    void turn();
    return () => { stopped = true; clearTimeout(timer); };
  }, inputs);
}
