// When a completion is taken: by Tab or a click, and by Enter only after a choice with the arrow keys.
//
// In: where completions come from. Out: an extension of the editor.
// Invariants
// - Enter without a choice is a new line, whatever list is open: what was typed stays as it is.
// - A list is open only in the editor that has the focus: one that was asked for before the focus left is not shown.
import { acceptCompletion, autocompletion, closeCompletion, moveCompletionSelection, startCompletion, type CompletionSource } from "@codemirror/autocomplete";
import { Prec, StateEffect, StateField, type Extension } from "@codemirror/state";
import { keymap, type Command } from "@codemirror/view";

const choose = StateEffect.define<boolean>();
/** Whether the arrows have chosen in the list that is open now: typing, moving the cursor and another list begin again. */
const chosen = StateField.define<boolean>({
  create: () => false,
  update(value, transaction) {
    for (const effect of transaction.effects) if (effect.is(choose)) return effect.value;
    return value && !transaction.docChanged && !transaction.selection;
  },
});

const andChoose = (command: Command, value: boolean): Command => (view) => {
  const done = command(view);
  if (done) view.dispatch({ effects: choose.of(value) });
  return done;
};
const start = andChoose(startCompletion, false);

export function completion(source: CompletionSource): Extension {
  const whileFocused: CompletionSource = async (context) => {
    const result = await source(context);
    return context.view && !context.view.hasFocus ? null : result;
  };
  return [
    autocompletion({ override: [whileFocused], icons: false, defaultKeymap: false }),
    chosen,
    Prec.highest(keymap.of([
      { key: "Tab", run: acceptCompletion },
      { key: "Enter", run: (view) => view.state.field(chosen) && acceptCompletion(view) },
      { key: "Ctrl-Space", run: start }, { mac: "Alt-`", run: start }, { mac: "Alt-i", run: start },
      { key: "Escape", run: andChoose(closeCompletion, false) },
      { key: "ArrowDown", run: andChoose(moveCompletionSelection(true), true) }, { key: "ArrowUp", run: andChoose(moveCompletionSelection(false), true) },
      { key: "PageDown", run: andChoose(moveCompletionSelection(true, "page"), true) }, { key: "PageUp", run: andChoose(moveCompletionSelection(false, "page"), true) },
    ])),
  ];
}
