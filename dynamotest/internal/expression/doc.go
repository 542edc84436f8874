// Package expression is DynamoDB's expression language: condition, filter, key condition, update
// and projection expressions.
//
// A request has one Attributes, the placeholders that all its expressions share. Each expression is
// parsed with it, which finds everything that is wrong with the text, and then used on items as
// often as one likes:
//
//	attributes := expression.NewAttributes(names, values)
//	if err := attributes.Validate(); err != nil { ... }
//	condition, err := expression.ParseCondition("ConditionExpression", source, attributes)
//	...
//	if err := attributes.CheckUsed(); err != nil { ... }
//	holds, err := condition.Holds(item)
//
// All errors are ValidationExceptions with DynamoDB's words. Where an expression has several faults
// the one that DynamoDB names is named, as far as that has an order: faults of syntax and redundant
// parentheses first, then reserved words and misplaced functions, then placeholders that are not
// defined and operands of the wrong type, then the number of operators.
//
// What is parsed may be used from several goroutines at once. Items and values are only read: a
// result shares what it can with them.
//
// Sources: Amazon DynamoDB Developer Guide, "Using expressions in DynamoDB", "Reserved words in
// DynamoDB", and "Expression parameters" of "Quotas in Amazon DynamoDB"; for words and corner cases
// DynamoDB Local, which the tests ask about each of them.
package expression

// Limits of an expression.
const (
	maxSize      = 4096 // bytes
	maxOperators = 300  // operators and functions, of which BETWEEN and IN are one each
	maxDepth     = 32   // elements of a document path
	maxIn        = 100  // operands in the list of IN
	maxIndex     = 1<<31 - 1
)
