// One editor for SQL, JSON and JavaScript: CodeMirror with our colours, labels and keys.
//
// Tab is left to the browser, so that the keyboard can leave the editor, unless a list of completions is open.
import { closeBrackets, closeBracketsKeymap, type CompletionSource } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { javascript } from "@codemirror/lang-javascript";
import { json } from "@codemirror/lang-json";
import { HighlightStyle, bracketMatching, foldGutter, foldKeymap, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, lintKeymap, linter, type Diagnostic } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { Annotation, EditorState, StateEffect, type Extension } from "@codemirror/state";
import { EditorView, drawSelection, highlightActiveLine, keymap, lineNumbers, placeholder as placeholderText, type KeyBinding } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { completion } from "./completion.ts";
import { JsonError, parse } from "./json.ts";
import { sqlLanguage } from "./sql.ts";

export type Language = "sql" | "json" | "javascript";
export type Check = (text: string) => Promise<Diagnostic[]> | Diagnostic[];

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier, tags.controlKeyword, tags.definitionKeyword], color: "var(--code-keyword)", fontWeight: "600" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--code-string)" },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: "var(--code-number)" },
  { tag: [tags.comment], color: "var(--code-comment)", fontStyle: "italic" },
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--code-name)" },
  { tag: [tags.function(tags.variableName), tags.function(tags.propertyName), tags.standard(tags.name)], color: "var(--code-function)" },
  { tag: [tags.special(tags.variableName)], color: "var(--code-parameter)" },
]);

const look = EditorView.theme({
  "&": { height: "100%", fontSize: "13px", backgroundColor: "var(--ground)", color: "var(--text)" },
  "&.cm-focused": { outline: "2px solid var(--focus)", outlineOffset: "-2px" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55" },
  ".cm-content": { caretColor: "var(--text)", padding: "8px 0" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "var(--ground)", color: "var(--faint)", border: "none" },
  ".cm-activeLine": { backgroundColor: "var(--line-active)" },
  ".cm-activeLineGutter": { backgroundColor: "transparent", color: "var(--text)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--selection)" },
  ".cm-placeholder": { color: "var(--faint)" },
  ".cm-tooltip": { backgroundColor: "var(--raised)", color: "var(--text)", border: "1px solid var(--border)", borderRadius: "8px", boxShadow: "var(--shadow)", overflow: "hidden" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", maxHeight: "15em" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "3px 10px" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
  ".cm-completionDetail": { fontStyle: "normal", opacity: "0.75", marginLeft: "1em" },
  ".cm-completionInfo": { padding: "8px 12px", maxWidth: "360px", fontFamily: "var(--sans)" },
  ".cm-completionInfo code": { display: "block", fontFamily: "var(--mono)", marginBottom: "4px" },
  ".cm-diagnostic": { padding: "6px 10px", whiteSpace: "pre-wrap", maxWidth: "60ch" },
  ".cm-panels": { backgroundColor: "var(--raised)", color: "var(--text)" },
  ".cm-textfield": { backgroundColor: "var(--ground)", borderColor: "var(--border)" },
  ".cm-button": { backgroundImage: "none", backgroundColor: "var(--ground)", borderColor: "var(--border)" },
  ".cm-foldPlaceholder": { backgroundColor: "var(--line-active)", border: "none", color: "var(--muted)" },
  ".cm-matchingBracket, &.cm-focused .cm-matchingBracket": { backgroundColor: "var(--selection)" },
  ".cm-selectionMatch": { backgroundColor: "var(--selection)" },
});

export function jsonProblems(text: string): Diagnostic[] {
  if (!text.trim()) return [];
  try {
    parse(text);
    return [];
  } catch (error) {
    const at = error instanceof JsonError ? Math.min(error.at, text.length) : 0;
    return [{ from: at, to: Math.min(at + 1, text.length), severity: "error", message: (error as Error).message }];
  }
}

const LANGUAGES: Record<Language, () => Extension> = { sql: () => sqlLanguage, json: () => json(), javascript: () => javascript() };

interface EditorProps {
  value: string;
  language: Language;
  label: string;
  onChange?: (value: string) => void;
  readOnly?: boolean;
  placeholder?: string;
  complete?: CompletionSource;
  check?: Check;
  /** What the check depends on besides the text: another value checks again. */
  checkAgain?: unknown;
  keys?: KeyBinding[];
  onView?: (view: EditorView | null) => void;
}

/**
 * Typing over a selection: the browser would keep the colours of the old text in a style attribute, which the page's
 * content policy refuses with an error in the console, so the text is put in place by us.
 */
const typeOverSelection = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const { from, to, empty } = view.state.selection.main;
    const text = event.data;
    if (event.inputType !== "insertText" || !text || empty || view.state.readOnly || view.composing) return false;
    const insert = () => view.state.update(view.state.replaceSelection(text), { userEvent: "input.type", scrollIntoView: true });
    event.preventDefault();
    if (!view.state.facet(EditorView.inputHandler).some((handle) => handle(view, from, to, text, insert))) view.dispatch(insert());
    return true;
  },
});

/** What every editor of ours has, also those of the merge view. */
export function basics(language: Language, label: string, readOnly: boolean): Extension[] {
  return [
    lineNumbers(), foldGutter(), drawSelection(), bracketMatching(), highlightSelectionMatches(), look, syntaxHighlighting(colours),
    LANGUAGES[language](), EditorView.lineWrapping, typeOverSelection, EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
    EditorState.readOnly.of(readOnly), keymap.of([...searchKeymap, ...foldKeymap]),
    ...(readOnly ? [] : [history(), indentOnInput(), closeBrackets(), highlightActiveLine(), keymap.of([...closeBracketsKeymap, ...historyKeymap])]),
    keymap.of(defaultKeymap),
  ];
}

/** A change that came from outside and is not told there again. */
const fromOutside = Annotation.define<boolean>();

function extensions(props: EditorProps, latest: { current: EditorProps }, told: { current: string[] }): Extension[] {
  const check = props.check ?? (props.language === "json" && !props.readOnly ? jsonProblems : undefined);
  return [
    ...(props.keys ? [keymap.of(props.keys.map((binding) => ({ ...binding, run: (view) => latest.current.keys?.find((k) => k.key === binding.key)?.run?.(view) ?? false })))] : []),
    ...(props.complete ? [completion((context) => latest.current.complete!(context))] : []),
    ...basics(props.language, props.label, props.readOnly ?? false),
    ...(check ? [linter((view) => (latest.current.check ?? check)(view.state.doc.toString()), { delay: 300, needsRefresh: (update) => update.transactions.some((t) => t.effects.some((effect) => effect.is(lintAgain))) }), lintGutter(), keymap.of(lintKeymap)] : []),
    ...(props.placeholder ? [placeholderText(props.placeholder)] : []),
    EditorView.updateListener.of((update) => {
      if (!update.docChanged || !latest.current.onChange || update.transactions.some((t) => t.annotation(fromOutside))) return;
      const text = update.state.doc.toString();
      told.current = [...told.current, text].slice(-TOLD_MAX);
      latest.current.onChange(text);
    }),
  ];
}

/** Something that the check depends on has changed. */
const lintAgain = StateEffect.define<null>();
const TOLD_MAX = 200;

/**
 * What is typed is told outside, and comes back as `value` some keystrokes later: texts that are on their way back (`told`)
 * must not replace what has been typed since. A text from outside is put in place with the rendering, not after the next
 * frame: a key between the two would be lost.
 */
export function Editor(props: EditorProps) {
  const told = useRef<string[]>([]);
  const element = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const latest = useRef(props);
  latest.current = props;
  useLayoutEffect(() => {
    view.current = new EditorView({ parent: element.current!, state: EditorState.create({ doc: props.value, extensions: extensions(props, latest, told) }) });
    props.onView?.(view.current);
    return () => {
      latest.current.onView?.(null);
      view.current?.destroy();
      view.current = null;
    };
  }, [props.language, props.readOnly]);
  useLayoutEffect(() => {
    const current = view.current;
    const own = told.current.indexOf(props.value);
    told.current = told.current.slice(own + 1);
    if (own < 0 && current && current.state.doc.toString() !== props.value)
      current.dispatch({ changes: { from: 0, to: current.state.doc.length, insert: props.value }, annotations: fromOutside.of(true) });
  }, [props.value]);
  useEffect(() => view.current?.dispatch({ effects: lintAgain.of(null) }), [props.checkAgain]);
  return <div class="editor" ref={element} />;
}
