// The five S3 calls of CDK's auto-delete-objects function, for the embedded AWS.
// AWS Lambda's Node runtime carries the AWS SDK; a laptop doesn't, and MiniStack stands in for JSON services only.
"use strict";

const ENTITIES = { lt: "<", gt: ">", quot: '"', apos: "'", amp: "&" };

const unescaped = (text) => text.replace(/&(lt|gt|quot|apos|amp);/g, (_, name) => ENTITIES[name]);
const escaped = (text) => text.replace(/[<>"'&]/g, (mark) => `&#${mark.charCodeAt(0)};`);

const blocks = (xml, tag) => [...xml.matchAll(new RegExp(`<${tag}>(.*?)</${tag}>`, "gs"))].map((found) => found[1]);
const value = (xml, tag) => {
  const found = blocks(xml, tag)[0];
  return found === undefined ? undefined : unescaped(found);
};

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

  async #call(method, bucket, query, body) {
    const scope = `${process.env.AWS_ACCESS_KEY_ID}/20260101/${process.env.AWS_REGION}/s3/aws4_request`;
    const response = await fetch(`${process.env.AWS_ENDPOINT_URL}/${bucket}?${query}`, {
      method,
      body,
      headers: { authorization: `AWS4-HMAC-SHA256 Credential=${scope}, SignedHeaders=host, Signature=0` },
    });
    const text = await response.text();
    if (response.ok) return text;
    const error = new Error(value(text, "Message") ?? text);
    error.name = value(text, "Code") ?? `Http${response.status}`;
    throw error;
  }
}

module.exports = { S3 };
