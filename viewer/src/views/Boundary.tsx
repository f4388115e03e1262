import { Component, type ComponentChildren } from "preact";

interface Properties {
  what: string;
  children: ComponentChildren;
}

interface State {
  error: string | null;
}

// A mistake in one part of the page leaves the others as they are.
export class Boundary extends Component<Properties, State> {
  override state: State = { error: null };

  static override getDerivedStateFromError(error: unknown): State {
    return { error: String(error) };
  }

  override render({ what, children }: Properties) {
    const { error } = this.state;
    return error === null ? <>{children}</> : <p class="notice">{what} cannot be shown: {error}</p>;
  }
}
