// A program of the event-store-adapter family, as its users write them: bank accounts over event-store-adapter-js, with
// its default serializers and key resolver. The Go tests of this folder start it and talk to it in lines of JSON: a
// request {op, ...} on stdin, an answer {ok} or {error} on stdout.

import { randomUUID } from "node:crypto";
import { createInterface } from "node:readline";
import { CreateTableCommand, DynamoDBClient } from "@aws-sdk/client-dynamodb";
import adapter from "event-store-adapter-js";
import moment from "moment";

const { EventStoreFactory } = adapter;

class AccountId {
  typeName = "account";
  constructor(value) {
    this.value = value;
  }
  asString() {
    return `${this.typeName}-${this.value}`;
  }
}

class AccountEvent {
  constructor(typeName, isCreated, fields) {
    Object.assign(this, { typeName, isCreated }, fields);
  }
  static opened(aggregateId, owner) {
    return new AccountEvent("AccountOpened", true, place(aggregateId, 1, { owner }));
  }
  static deposited(aggregateId, sequenceNumber, amount) {
    return new AccountEvent("AccountDeposited", false, place(aggregateId, sequenceNumber, { amount }));
  }
  static from({ type, data }) {
    if (type !== "AccountOpened" && type !== "AccountDeposited") throw new Error(`event of unknown type ${type}`);
    return new AccountEvent(type, type === "AccountOpened", {
      ...data,
      aggregateId: new AccountId(data.aggregateId.value),
      occurredAt: new Date(data.occurredAt),
    });
  }
}

function place(aggregateId, sequenceNumber, fields) {
  return { id: randomUUID(), aggregateId, sequenceNumber, occurredAt: new Date(), ...fields };
}

class Account {
  typeName = "Account";
  constructor(id, owner, balance, sequenceNumber, version) {
    Object.assign(this, { id, owner, balance, sequenceNumber, version });
  }
  withVersion(version) {
    return new Account(this.id, this.owner, this.balance, this.sequenceNumber, version);
  }
  updateVersion(change) {
    return this.withVersion(change(this.version));
  }
  apply(event) {
    if (event.sequenceNumber !== this.sequenceNumber + 1) {
      throw new Error(`event ${event.sequenceNumber} comes after ${this.sequenceNumber}`);
    }
    const owner = event.typeName === "AccountOpened" ? event.owner : this.owner;
    const balance = this.balance + (event.amount ?? 0);
    return new Account(this.id, owner, balance, event.sequenceNumber, this.version);
  }
  static from({ data }) {
    return new Account(new AccountId(data.id.value), data.owner, data.balance, data.sequenceNumber, data.version);
  }
}

// The tables as the tests of event-store-adapter-js make them, under the names that its users give.
async function createTables() {
  const throughput = { ReadCapacityUnits: 10, WriteCapacityUnits: 5 };
  const keys = (hash, range) => [
    { AttributeName: hash, KeyType: "HASH" },
    { AttributeName: range, KeyType: "RANGE" },
  ];
  for (const [table, index] of [
    [tables.journal, indexes.journal],
    [tables.snapshot, indexes.snapshot],
  ]) {
    await client.send(
      new CreateTableCommand({
        TableName: table,
        AttributeDefinitions: [
          { AttributeName: "pkey", AttributeType: "S" },
          { AttributeName: "skey", AttributeType: "S" },
          { AttributeName: "aid", AttributeType: "S" },
          { AttributeName: "seq_nr", AttributeType: "N" },
        ],
        KeySchema: keys("pkey", "skey"),
        GlobalSecondaryIndexes: [
          {
            IndexName: index,
            KeySchema: keys("aid", "seq_nr"),
            Projection: { ProjectionType: "ALL" },
            ProvisionedThroughput: throughput,
          },
        ],
        ProvisionedThroughput: throughput,
      }),
    );
  }
}

let tables;
let indexes;
let client;
let store;

function connect({ endpoint, region, accessKeyId, shards, keepSnapshotCount, deleteTtlDays, ...names }) {
  ({ tables, indexes } = names);
  client = new DynamoDBClient({ endpoint, region, credentials: { accessKeyId, secretAccessKey: "secret" } });
  store = EventStoreFactory.ofDynamoDB(
    client,
    tables.journal,
    tables.snapshot,
    indexes.journal,
    indexes.snapshot,
    shards,
    AccountEvent.from,
    Account.from,
  );
  if (keepSnapshotCount) store = store.withKeepSnapshotCount(keepSnapshotCount);
  if (deleteTtlDays) store = store.withDeleteTtl(moment.duration(deleteTtlDays, "days"));
}

async function load(id) {
  const snapshot = await store.getLatestSnapshotById(id);
  if (snapshot === undefined) throw new Error(`${id.asString()} not found`);
  const events = await store.getEventsByIdSinceSequenceNumber(id, snapshot.sequenceNumber + 1);
  return events.reduce((account, event) => account.apply(event), snapshot);
}

async function open(id, owner) {
  const event = AccountEvent.opened(id, owner);
  await store.persistEventAndSnapshot(event, new Account(id, "", 0, 0, 1).apply(event));
}

async function deposit(id, amount, withSnapshot) {
  const account = await load(id);
  const event = AccountEvent.deposited(id, account.sequenceNumber + 1, amount);
  if (withSnapshot) {
    await store.persistEventAndSnapshot(event, account.apply(event));
  } else {
    await store.persistEvent(event, account.version);
  }
}

// A transaction that meets another one is cancelled without an optimistic lock error of the adapter.
function isConflict(error) {
  return error.name === "OptimisticLockError" || error.CancellationReasons?.some((r) => r.Code === "TransactionConflict");
}

const operations = {
  connect,
  createTables,
  open: ({ id, owner }) => open(new AccountId(id), owner),
  deposit: ({ id, amount, withSnapshot }) => deposit(new AccountId(id), amount, withSnapshot),

  // Each deposit is tried again until it wins. Every third one stores a snapshot.
  async depositMany({ id, count }) {
    let conflicts = 0;
    for (let done = 0; done < count; ) {
      try {
        await deposit(new AccountId(id), 1, done % 3 === 2);
        done++;
      } catch (error) {
        if (!isConflict(error)) throw error;
        conflicts++;
      }
    }
    return { conflicts };
  },

  async load({ id }) {
    const { owner, balance, sequenceNumber, version } = await load(new AccountId(id));
    return { owner, balance, sequenceNumber, version };
  },

  async events({ id, since }) {
    const events = await store.getEventsByIdSinceSequenceNumber(new AccountId(id), since);
    return events.map(({ id, typeName, sequenceNumber, aggregateId, occurredAt, amount, owner }) => ({
      id,
      type: typeName,
      number: sequenceNumber,
      aggregate: aggregateId.asString(),
      millis: occurredAt.getTime(),
      amount,
      owner,
    }));
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  let answer;
  try {
    const request = JSON.parse(line);
    answer = { ok: (await operations[request.op](request)) ?? {} };
  } catch (error) {
    answer = { error: `${error.name}: ${error.message}` };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
