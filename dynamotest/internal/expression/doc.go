// Package expression implements DynamoDB's expression language: condition, filter, key condition,
// update and projection expressions.
//
// A request has one Attributes with the placeholders that all its expressions share. Parsing an
// expression finds all faults in its text. A parsed expression can be applied to any number of
// items:
//
//	attributes := expression.NewAttributes(names, values)
//	if err := attributes.Validate(); err != nil { ... }
//	condition, err := expression.ParseCondition("ConditionExpression", source, attributes)
//	...
//	if err := attributes.CheckUsed(); err != nil { ... }
//	holds, err := condition.Holds(item)
//
// All errors are ValidationExceptions with DynamoDB's messages. If an expression has several
// faults, the error is about the same one as DynamoDB's, as far as DynamoDB has an order: first
// faults of syntax and redundant parentheses, then reserved words and misplaced functions, then
// undefined placeholders and operands of the wrong type, then the number of operators.
//
// Parsed expressions may be used by several goroutines. Items and values are only read, and results
// share parts with them.
//
// Sources: Amazon DynamoDB Developer Guide, "Using expressions in DynamoDB", "Reserved words in
// DynamoDB", and "Expression parameters" of "Quotas in Amazon DynamoDB". The messages and special
// cases are those of DynamoDB Local, and tests compare each of them.
package expression

// Limits of an expression.
const (
	maxSize      = 4096 // in bytes
	maxOperators = 300  // operators and functions; BETWEEN and IN count as one each
	maxDepth     = 32   // elements of a document path
	maxIn        = 100  // operands in the list of IN
	maxIndex     = 1<<31 - 1
)
