// The event stores in JavaScript of this comparison, each used as its documentation says. The Go
// program starts it and sends one request as JSON in a line: {op, ...}. The reply is a line too:
// {micros} is the time of the calls on the store, or {error}.

import { randomUUID } from "node:crypto";
import { createInterface } from "node:readline";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import castore from "@castore/core";
import castoreDynamoDB from "@castore/event-storage-adapter-dynamodb";
import adapter from "event-store-adapter-js";

class DocumentId {
  typeName = "document";
  constructor(value) {
    this.value = value;
  }
  asString() {
    return `${this.typeName}-${this.value}`;
  }
}

class Written {
  typeName = "written";
  constructor(id, aggregateId, sequenceNumber, occurredAt, text) {
    Object.assign(this, { id, aggregateId, sequenceNumber, occurredAt, text });
    this.isCreated = sequenceNumber === 1;
  }
  static from({ data }) {
    const id = new DocumentId(data.aggregateId.value);
    return new Written(data.id, id, data.sequenceNumber, new Date(data.occurredAt), data.text);
  }
}

class Document {
  typeName = "document";
  constructor(id, sequenceNumber, version, text) {
    Object.assign(this, { id, sequenceNumber, version, text });
  }
  withVersion(version) {
    return new Document(this.id, this.sequenceNumber, version, this.text);
  }
  updateVersion(change) {
    return this.withVersion(change(this.version));
  }
  apply(event) {
    return new Document(this.id, event.sequenceNumber, this.version, event.text);
  }
  static from({ data }) {
    return new Document(new DocumentId(data.id.value), data.sequenceNumber, data.version, data.text);
  }
}

// Adapter is event-store-adapter-js. Its version counts commits from 1. It has no call for several
// events, so each is a commit of its own.
class Adapter {
  documents = new Map();

  constructor(client, name) {
    this.store = adapter.EventStoreFactory.ofDynamoDB(
      client,
      `${name}-journal`,
      `${name}-snapshot`,
      "journal-aid-index",
      "snapshot-aid-index",
      16,
      Written.from,
      Document.from,
    );
  }

  async append(id, texts, snapshot) {
    let document = this.documents.get(id) ?? new Document(new DocumentId(id), 0, 1, "");
    for (const text of texts) {
      const event = new Written(randomUUID(), document.id, document.sequenceNumber + 1, new Date(), text);
      document = document.apply(event);
      if (event.isCreated) {
        await this.store.persistEventAndSnapshot(event, document);
        continue;
      }
      if (snapshot) {
        await this.store.persistEventAndSnapshot(event, document);
      } else {
        await this.store.persistEvent(event, document.version);
      }
      document = document.withVersion(document.version + 1);
    }
    this.documents.set(id, document);
  }

  async load(value) {
    const id = new DocumentId(value);
    const snapshot = await this.store.getLatestSnapshotById(id);
    const events = await this.store.getEventsByIdSinceSequenceNumber(id, snapshot.sequenceNumber + 1);
    const document = events.reduce((state, event) => state.apply(event), snapshot);
    this.documents.set(value, document);
    return { events: document.sequenceNumber, text: document.text };
  }
}

// Castore is castore with its adapter for DynamoDB. Several events are an event group, which is a
// transaction. The adapter stores no snapshots.
class Castore {
  documents = new Map();

  constructor(client, name) {
    this.store = new castore.EventStore({
      eventStoreId: "document",
      eventTypes: [new castore.EventType({ type: "written" })],
      reducer: (_, event) => ({
        aggregateId: event.aggregateId,
        version: event.version,
        text: event.payload.text,
      }),
      eventStorageAdapter: new castoreDynamoDB.DynamoDBSingleTableEventStorageAdapter({
        tableName: `${name}-events`,
        dynamoDBClient: client,
      }),
    });
  }

  async append(id, texts) {
    const prevAggregate = this.documents.get(id);
    const version = prevAggregate?.version ?? 0;
    const events = texts.map((text, i) => ({
      aggregateId: id,
      version: version + 1 + i,
      type: "written",
      payload: { text },
    }));
    let pushed;
    if (events.length === 1) {
      pushed = [await this.store.pushEvent(events[0], { prevAggregate })];
    } else {
      const grouped = events.map((event) => this.store.groupEvent(event, { prevAggregate }));
      pushed = (await castore.EventStore.pushEventGroup(...grouped)).eventGroup;
    }
    this.documents.set(id, pushed.at(-1).nextAggregate);
  }

  async load(id) {
    const { aggregate } = await this.store.getAggregate(id);
    this.documents.set(id, aggregate);
    return { events: aggregate.version, text: aggregate.text };
  }
}

const kinds = { adapter: Adapter, castore: Castore };
const stores = {};

async function timed(call) {
  const start = performance.now();
  const result = await call();
  return { ...result, micros: (performance.now() - start) * 1000 };
}

const operations = {
  // open opens a store on a database, and replaces an earlier one of this name.
  open({ store, kind, endpoint, region, accessKeyId }) {
    const client = new DynamoDBClient({ endpoint, region, credentials: { accessKeyId, secretAccessKey: "secret" } });
    stores[store] = new kinds[kind](client, store);
    return {};
  },
  append: ({ store, id, texts, snapshot }) => timed(() => stores[store].append(id, texts, snapshot)),
  load: ({ store, id }) => timed(() => stores[store].load(id)),
};

for await (const line of createInterface({ input: process.stdin })) {
  let answer;
  try {
    const request = JSON.parse(line);
    answer = await operations[request.op](request);
  } catch (error) {
    answer = { error: `${error.name}: ${error.message}` };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
