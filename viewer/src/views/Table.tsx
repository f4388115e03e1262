import type { ComponentChildren } from "preact";

export interface Column<Row> {
  title: string;
  cell: (row: Row) => ComponentChildren;
  number?: boolean;
  wide?: boolean; // text that is not to be squeezed: on a narrow screen, cells of the table stand below each other
}

const classOf = <Row,>({ number, wide }: Column<Row>) => (number === true ? "number" : wide === true ? "wide" : "");

interface Properties<Row> {
  caption: string;
  columns: Column<Row>[];
  rows: Row[];
  hideCaption?: boolean;
}

export function Table<Row>({ caption, columns, rows, hideCaption = false }: Properties<Row>) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={caption}>
      <table class={columns.some((column) => column.wide === true) ? "data stacks" : "data"}>
        <caption class={hideCaption ? "hidden" : ""}>{caption}</caption>
        <thead>
          <tr>{columns.map((column) => <th key={column.title} scope="col" class={classOf(column)}>{column.title}</th>)}</tr>
        </thead>
        <tbody>
          {rows.map((row, i) => (
            <tr key={i}>
              {columns.map((column) => <td key={column.title} class={classOf(column)} data-title={column.title}>{column.cell(row)}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
