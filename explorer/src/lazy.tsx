// Panels arrive when they are first opened, so that the first paint needs only the shell.
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Waiting } from "./ui.tsx";

export function lazy<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  let loaded: ComponentType<P> | undefined;
  return function Lazy(props: P) {
    const [, setReady] = useState(false);
    const [error, setError] = useState("");
    useEffect(() => {
      if (!loaded)
        load().then((component) => { loaded = component; setReady(true); }, (e: unknown) => setError(String(e)));
    }, []);
    if (error) return <div class="problem" role="alert">This part of the page could not be loaded: {error}. Reload the page.</div>;
    const Loaded = loaded;
    return Loaded ? <Loaded {...props} /> : <Waiting />;
  };
}

