// A table of any length: only the rows in view are in the page, and scrolling moves a window over them.
//
// In: how many rows there are and how to get one (parsed when it comes into view). Out: an ARIA grid with one tab stop,
// arrows, Page Up and Down, Home, End, Enter.
import { Virtualizer, elementScroll, observeElementOffset, observeElementRect } from "@tanstack/virtual-core";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { show, typeOf, type Value } from "./json.ts";
import { Icon } from "./ui.tsx";

export interface Column {
  key: string;
  name: string;
  value: (row: number) => Value | undefined;
  /** A class of the cell, where its value alone does not say how it looks. */
  look?: (row: number) => string;
}
export interface Sort {
  key: string;
  descending: boolean;
}
interface GridProps {
  label: string;
  rows: number;
  columns: Column[];
  /** All rows that exist, where more can be loaded than are here. */
  total?: number;
  sort?: Sort | undefined;
  onSort?: (sort: Sort | undefined) => void;
  selected?: number | undefined;
  onSelect?: (row: number) => void;
  onOpen?: (row: number) => void;
  /** The last rows are in view. */
  onEnd?: () => void;
}

const ROW_HEIGHT = 30;
/** More than are ever in view: rows that leave at one end give their elements to those that come in at the other. */
const ROW_ELEMENTS = 256;
const COLUMN_WIDTH = { min: 80, max: 320, character: 7.6 };

function useVirtualRows(rows: number) {
  const scroller = useRef<HTMLDivElement>(null);
  const [, setTurn] = useState(0);
  const virtualizer = useMemo(() => new Virtualizer<HTMLDivElement, HTMLDivElement>({
    count: rows, getScrollElement: () => scroller.current, estimateSize: () => ROW_HEIGHT, overscan: 6,
    scrollToFn: elementScroll, observeElementOffset, observeElementRect,
    onChange: () => setTurn((turn) => turn + 1),
  }), []);
  virtualizer.setOptions({ ...virtualizer.options, count: rows });
  useLayoutEffect(() => virtualizer._didMount(), []);
  useLayoutEffect(() => virtualizer._willUpdate());
  return { scroller, virtualizer };
}

/** Widths from the names and from the first rows, once for each set of columns. */
function useWidths(columns: Column[], rows: number): number[] {
  const key = columns.map((column) => column.key).join("\u0000");
  return useMemo(() => columns.map((column) => {
    let length = column.name.length + 3;
    for (let row = 0; row < Math.min(rows, 30); row++) length = Math.max(length, show(column.value(row)).length);
    return Math.min(COLUMN_WIDTH.max, Math.max(COLUMN_WIDTH.min, length * COLUMN_WIDTH.character + 24));
  }), [key, rows === 0]);
}

export function Grid(props: GridProps) {
  const { columns, rows, label } = props;
  const { scroller, virtualizer } = useVirtualRows(rows);
  const widths = useWidths(columns, rows);
  const [cursor, setCursor] = useState({ row: 0, column: 0 });
  const id = useMemo(() => `grid-${Math.random().toString(36).slice(2)}`, []);
  const items = virtualizer.getVirtualItems();
  const last = items.at(-1)?.index ?? -1;
  useEffect(() => { if (rows > 0 && last >= rows - 40) props.onEnd?.(); }, [last, rows]);

  const move = (row: number, column: number) => {
    row = Math.max(0, Math.min(rows - 1, row));
    setCursor({ row, column: Math.max(0, Math.min(columns.length - 1, column)) });
    virtualizer.scrollToIndex(row, { align: "auto" });
  };
  const keys = (event: KeyboardEvent) => {
    const page = Math.max(1, Math.floor((scroller.current?.clientHeight ?? 300) / ROW_HEIGHT) - 2);
    const { row, column } = cursor;
    const steps: Record<string, () => void> = {
      ArrowDown: () => move(row + 1, column), ArrowUp: () => move(row - 1, column), ArrowRight: () => move(row, column + 1), ArrowLeft: () => move(row, column - 1),
      PageDown: () => move(row + page, column), PageUp: () => move(row - page, column),
      Home: () => move(event.ctrlKey ? 0 : row, 0), End: () => move(event.ctrlKey ? rows - 1 : row, columns.length - 1),
      Enter: () => (props.onOpen ?? props.onSelect)?.(row), " ": () => props.onSelect?.(row),
    };
    const step = Object.hasOwn(steps, event.key) ? steps[event.key] : undefined;
    if (!step || (event.target as HTMLElement).tagName === "BUTTON") return;
    event.preventDefault();
    step();
  };
  const template = widths.map((width) => `${width}px`).join(" ");
  const cursorShown = items.some((item) => item.index === cursor.row);
  return (
    <div class="grid" role="grid" aria-label={label} aria-rowcount={(props.total ?? rows) + 1} aria-colcount={columns.length} tabIndex={0}
      aria-activedescendant={cursorShown ? `${id}-${cursor.row}-${cursor.column}` : undefined} ref={scroller} onKeyDown={keys}>
      <Head columns={columns} template={template} sort={props.sort} onSort={props.onSort} />
      <div class="grid-body" role="rowgroup" style={{ height: `${virtualizer.getTotalSize()}px` }}>
        {items.map((item) => (
          <Row key={item.index % ROW_ELEMENTS} index={item.index} top={item.start} id={id} columns={columns} template={template} selected={props.selected === item.index}
            cursor={cursor.row === item.index ? cursor.column : -1} version={props.columns}
            onClick={(column) => { setCursor({ row: item.index, column }); props.onSelect?.(item.index); }} onOpen={() => props.onOpen?.(item.index)} />
        ))}
      </div>
    </div>
  );
}

function Head({ columns, template, sort, onSort }: { columns: Column[]; template: string; sort: Sort | undefined; onSort: GridProps["onSort"] }) {
  const next = (key: string): Sort | undefined => (sort?.key !== key ? { key, descending: false } : sort.descending ? undefined : { key, descending: true });
  return (
    <div class="grid-head" role="rowgroup">
      <div role="row" aria-rowindex={1} style={{ gridTemplateColumns: template }}>
        {columns.map((column, index) => {
          const direction = sort?.key !== column.key ? "none" : sort.descending ? "descending" : "ascending";
          return (
            <div key={column.key} role="columnheader" aria-colindex={index + 1} aria-sort={direction}>
              {onSort ? (
                <button type="button" onClick={() => onSort(next(column.key))} title={`Sort by ${column.name}`}>
                  <span>{column.name}</span>
                  {direction !== "none" && <span class={`arrow ${direction}`} aria-hidden="true"><Icon name="chevron" /></span>}
                </button>
              ) : <span>{column.name}</span>}
            </div>
          );
        })}
      </div>
    </div>
  );
}

interface RowProps {
  index: number;
  top: number;
  id: string;
  columns: Column[];
  template: string;
  selected: boolean;
  cursor: number;
  version: unknown;
  onClick: (column: number) => void;
  onOpen: () => void;
}
function Row({ index, top, id, columns, template, selected, cursor, onClick, onOpen }: RowProps) {
  return (
    <div role="row" aria-rowindex={index + 2} aria-selected={selected} class={`grid-row ${selected ? "selected" : ""}`} style={{ transform: `translateY(${top}px)`, gridTemplateColumns: template }} onDblClick={onOpen}>
      {columns.map((column, at) => {
        const value = column.value(index);
        return (
          <div key={column.key} id={`${id}-${index}-${at}`} role="gridcell" aria-colindex={at + 1} class={`cell ${typeOf(value)} ${column.look?.(index) ?? ""} ${cursor === at ? "cursor" : ""}`} onClick={() => onClick(at)}>
            {value === undefined ? <span class="missing" aria-label="undefined">–</span> : show(value)}
          </div>
        );
      })}
    </div>
  );
}
