import { useContext, useEffect, useRef, useState } from "preact/hooks";
import { messageOf } from "../net/api.ts";
import { count } from "../parts/format.ts";
import { readRaster } from "../parts/raster.ts";
import { EventWindowContext } from "./event-window.ts";
import { GROWS } from "./reader.ts";
import type { Picture } from "./reducer/item.ts";
import styles from "./timeline.module.css";

/** Limits: pictures per item, and the longer side of a picture, px. */
const MAX_PICTURES = 20;
const MAX_SIDE = 1_600;

/** Pictures of an item, loaded with `wholeEvent` when shown, because the base64 is only in the whole event. */
export function Pictures({ pictures }: { readonly pictures: readonly Picture[] }) {
  const more = pictures.length - MAX_PICTURES;
  return (
    <>
      {pictures.slice(0, MAX_PICTURES).map((picture) => (
        <PictureCanvas key={[picture.eventId, ...picture.at].join(" ")} picture={picture} />
      ))}
      {more > 0 && <p class={styles["empty"]}>{count(more, "more image")} are not shown.</p>}
    </>
  );
}

/** Draws the picture to a canvas, so that no script, link or animation of the file takes effect. */
function PictureCanvas({ picture }: { readonly picture: Picture }) {
  const eventWindow = useContext(EventWindowContext);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [name, setName] = useState("Image, loading");
  const [problem, setProblem] = useState("");
  useEffect(() => {
    let isOver = false;
    const draw = async (base64: unknown) => {
      const { bitmap, words } = await bitmapOf(typeof base64 === "string" ? base64 : "");
      if (canvas.current && !isOver) show(canvas.current, bitmap);
      bitmap.close();
      if (!isOver) setName(`Image, ${words}`);
    };
    const load = async () => {
      const whole = await eventWindow?.wholeEvent(picture.eventId);
      await inTurn(async () => (isOver ? undefined : draw(valueAt(whole, picture.at))));
    };
    load().catch((error: unknown) => isOver || setProblem(messageOf(error)));
    return () => {
      isOver = true;
    };
  }, [eventWindow, picture]);
  if (problem !== "") return <p class={styles["empty"]}>The image cannot be shown. {problem}</p>;
  return <canvas class={styles["picture"]} ref={canvas} width={0} height={0} role="img" aria-label={name} />;
}

let before: Promise<void> = Promise.resolve();

/** Draws pictures one after another, because each takes up to 160 MB while it is decoded. */
async function inTurn(draw: () => Promise<void>): Promise<void> {
  const drawn = before.then(draw);
  before = drawn.catch(() => undefined);
  return drawn;
}

function show(canvas: HTMLCanvasElement, bitmap: ImageBitmap): void {
  canvas.dispatchEvent(new Event(GROWS, { bubbles: true }));
  canvas.width = bitmap.width;
  canvas.height = bitmap.height;
  canvas.getContext("bitmaprenderer")?.transferFromImageBitmap(bitmap);
}

interface Decoded {
  readonly bitmap: ImageBitmap;
  /** Size, such as 400 × 300. */
  readonly words: string;
}

async function bitmapOf(base64: string): Promise<Decoded> {
  const { bytes, raster } = readRaster(base64);
  const scale = Math.min(1, MAX_SIDE / Math.max(raster.width, raster.height));
  const resizeWidth = Math.max(1, Math.round(raster.width * scale));
  try {
    const blob = new Blob([bytes], { type: raster.mediaType });
    const bitmap = await createImageBitmap(blob, scale < 1 ? { resizeWidth, resizeQuality: "high" } : {});
    return { bitmap, words: `${String(raster.width)} × ${String(raster.height)}` };
  } catch {
    throw new Error("It is damaged.");
  }
}

function valueAt(from: unknown, path: Picture["at"]): unknown {
  return path.reduce<unknown>(
    (value, name) => (typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined),
    from,
  );
}
