// Package awsproof runs Millrace on DynamoDB itself, within a budget, and reports what emulators
// cannot show: how often reads are stale, what failed requests cost, when partitions are throttled.
//
// [Run] prints its plan, asks for confirmation, and creates tables under a random prefix. It runs
// the steps one after the other, writes the report, and deletes the tables. [Clean] deletes the
// tables of a run that was killed. Every step is a function of a client, and the tests of this
// package run all of them on dynamotest.
package awsproof
