import { expect, test } from "vitest";
import schema from "../../report/render/report.schema.json?raw";
import { typesOf, type Schema } from "./schema_types";

test("the types of the report are those of its schema", async () => {
  await expect(typesOf(JSON.parse(schema) as Schema)).toMatchFileSnapshot("../src/model/schema.ts");
});
