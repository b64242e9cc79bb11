// The five S3 calls of CDK's auto-delete-objects function, for the embedded AWS.
// AWS Lambda's Node runtime carries the AWS SDK; a laptop doesn't, and MiniStack stands in for JSON services only.
"use strict";

const { createHash, createHmac } = require("node:crypto");

const ENTITIES = { lt: "<", gt: ">", quot: '"', apos: "'", amp: "&" };

const unescaped = (text) => text.replace(/&(lt|gt|quot|apos|amp);/g, (_, name) => ENTITIES[name]);
const escaped = (text) => text.replace(/[<>"'&]/g, (mark) => `&#${mark.charCodeAt(0)};`);

const blocks = (xml, tag) => [...xml.matchAll(new RegExp(`<${tag}>(.*?)</${tag}>`, "gs"))].map((found) => found[1]);
const value = (xml, tag) => {
  const found = blocks(xml, tag)[0];
  return found === undefined ? undefined : unescaped(found);
};

const sha256 = (text) => createHash("sha256").update(text).digest("hex");
const hmac = (key, text) => createHmac("sha256", key).update(text).digest();

// AWS Signature Version 4, with the credentials that the function was given.
function signedHeaders(method, host, path, query, body) {
  const { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION } = process.env;
  const time = new Date().toISOString().replace(/[-:]|\.\d{3}/g, "");
  const scope = [time.slice(0, 8), AWS_REGION, "s3", "aws4_request"];
  const headers = { host, "x-amz-content-sha256": sha256(body), "x-amz-date": time };
  if (AWS_SESSION_TOKEN) headers["x-amz-security-token"] = AWS_SESSION_TOKEN;
  const names = Object.keys(headers).sort();
  const lines = names.map((name) => `${name}:${headers[name]}\n`).join("");
  const request = [method, path, query, lines, names.join(";"), headers["x-amz-content-sha256"]].join("\n");
  const key = scope.reduce(hmac, `AWS4${AWS_SECRET_ACCESS_KEY}`);
  const signature = hmac(key, ["AWS4-HMAC-SHA256", time, scope.join("/"), sha256(request)].join("\n")).toString("hex");
  const credential = `${AWS_ACCESS_KEY_ID}/${scope.join("/")}`;
  headers.authorization = `AWS4-HMAC-SHA256 Credential=${credential}, SignedHeaders=${names.join(";")}, Signature=${signature}`;
  delete headers.host; // fetch sends it
  return headers;
}

class S3 {
  async getBucketTagging({ Bucket }) {
    const xml = await this.#call("GET", Bucket, "tagging");
    return { TagSet: blocks(xml, "Tag").map((tag) => ({ Key: value(tag, "Key"), Value: value(tag, "Value") })) };
  }

  async getBucketPolicy({ Bucket }) {
    return { Policy: await this.#call("GET", Bucket, "policy") };
  }

  async putBucketPolicy({ Bucket, Policy }) {
    await this.#call("PUT", Bucket, "policy", Policy);
    return {};
  }

  async listObjectVersions({ Bucket }) {
    const xml = await this.#call("GET", Bucket, "versions");
    const entries = (tag) =>
      blocks(xml, tag).map((entry) => ({ Key: value(entry, "Key"), VersionId: value(entry, "VersionId") }));
    return {
      Versions: entries("Version"),
      DeleteMarkers: entries("DeleteMarker"),
      IsTruncated: value(xml, "IsTruncated") === "true",
    };
  }

  async deleteObjects({ Bucket, Delete }) {
    const version = (id) => (id ? `<VersionId>${escaped(id)}</VersionId>` : "");
    const entries = Delete.Objects.map(
      (entry) => `<Object><Key>${escaped(entry.Key)}</Key>${version(entry.VersionId)}</Object>`,
    );
    await this.#call("POST", Bucket, "delete", `<Delete>${entries.join("")}</Delete>`);
    return {};
  }

  async #call(method, bucket, query, body = "") {
    const { host } = new URL(process.env.AWS_ENDPOINT_URL);
    const headers = signedHeaders(method, host, `/${bucket}`, `${query}=`, body);
    const response = await fetch(`${process.env.AWS_ENDPOINT_URL}/${bucket}?${query}`, {
      method,
      body: body || undefined,
      headers,
    });
    const text = await response.text();
    if (response.ok) return text;
    const error = new Error(value(text, "Message") ?? text);
    error.name = value(text, "Code") ?? `Http${response.status}`;
    throw error;
  }
}

module.exports = { S3 };
