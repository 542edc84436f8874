package expression_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func TestKeyConditions(t *testing.T) {
	t.Parallel()
	check(t, stringKeys, ourKeyCondition(types.ScalarAttributeTypeS))
	check(t, numberKeys, ourKeyCondition(types.ScalarAttributeTypeN))
	check(t, binaryKeys, ourKeyCondition(types.ScalarAttributeTypeB))
	check(t, noSortKey, ourKeyCondition(""))
}

func TestKeyConditionsOnDynamoDBLocal(t *testing.T) {
	t.Parallel()
	emulator := newLocal(t)
	checkLocal(t, stringKeys, emulator.keyCondition(types.ScalarAttributeTypeS))
	checkLocal(t, numberKeys, emulator.keyCondition(types.ScalarAttributeTypeN))
	checkLocal(t, binaryKeys, emulator.keyCondition(types.ScalarAttributeTypeB))
	checkLocal(t, noSortKey, emulator.keyCondition(""))
}

// stringKeys are key conditions for a table with a string as sort key. The results are the sort
// keys that are found.
var stringKeys = []group{
	{"the partition may be asked alone", []row{
		{expression: "pk = :k", want: "'a' 'ab' 'b' 'x' 'xy'"},
		{expression: ":k = pk", want: "'a' 'ab' 'b' 'x' 'xy'"},
		{expression: "(pk = :k)", want: "'a' 'ab' 'b' 'x' 'xy'"},
		{expression: "(pk) = (:k)", want: "'a' 'ab' 'b' 'x' 'xy'"},
		{expression: "#p = :k", want: "'a' 'ab' 'b' 'x' 'xy'"},
		{expression: "pk = :s", want: ""},
		{expression: "pk=:k", want: "'a' 'ab' 'b' 'x' 'xy'"},
	}},
	{"the sort key may be compared, in either order", []row{
		{expression: "pk = :k AND sk = :hi", want: "'b'"},
		{expression: "sk = :hi AND pk = :k", want: "'b'"},
		{expression: "pk = :k AND sk < :hi", want: "'a' 'ab'"},
		{expression: "pk = :k AND sk <= :hi", want: "'a' 'ab' 'b'"},
		{expression: "pk = :k AND sk > :hi", want: "'x' 'xy'"},
		{expression: "pk = :k AND sk >= :hi", want: "'b' 'x' 'xy'"},
		{expression: "pk = :k AND :hi = sk", want: "'b'"},
		{expression: "pk = :k AND :hi < sk", want: "'x' 'xy'"},
		{expression: "pk = :k AND :hi <= sk", want: "'b' 'x' 'xy'"},
		{expression: "pk = :k AND :hi > sk", want: "'a' 'ab'"},
		{expression: "pk = :k AND :hi >= sk", want: "'a' 'ab' 'b'"},
		{expression: "pk = :k AND sk BETWEEN :lo AND :hi", want: "'a' 'ab' 'b'"},
		{expression: "sk between :lo and :s and pk = :k", want: "'a' 'ab' 'b' 'x'"},
		{expression: "pk = :k AND begins_with(sk, :lo)", want: "'a' 'ab'"},
		{expression: "begins_with(sk, :s) AND pk = :k", want: "'x' 'xy'"},
		{expression: "(pk = :k) AND (sk = :s)", want: "'x'"},
		{expression: "(pk = :k AND sk = :s)", want: "'x'"},
		{expression: "((pk = :k) AND (sk = :s))", want: "'x'"},
		{expression: "((pk = :k AND sk = :s))", want: "Invalid KeyConditionExpression: The expression has redundant parentheses;"},
	}},
	{"other operators are refused", []row{
		{expression: "pk = :k AND sk <> :s", want: "Invalid operator used in KeyConditionExpression: <>"},
		{expression: "pk <> :k", want: "Invalid operator used in KeyConditionExpression: <>"},
		{expression: "pk = :k AND sk IN (:s)", want: "Invalid operator used in KeyConditionExpression: IN"},
		{expression: "pk = :k AND contains(sk, :s)", want: "Invalid operator used in KeyConditionExpression: contains"},
		{expression: "pk = :k AND attribute_exists(sk)", want: "Invalid operator used in KeyConditionExpression: attribute_exists"},
		{expression: "pk = :k AND attribute_not_exists(sk)", want: "Invalid operator used in KeyConditionExpression: attribute_not_exists"},
		{expression: "pk = :k AND attribute_type(sk, :t)", want: "Invalid operator used in KeyConditionExpression: attribute_type"},
		{expression: "pk = :k AND attribute_type(sk, :s)", want: "Invalid KeyConditionExpression: Invalid attribute type name found; type: x, valid types: {N,BS,L,B,NULL,M,S,SS,NS,BOOL}"},
		{expression: "pk = :k OR sk = :s", want: "Invalid operator used in KeyConditionExpression: OR"},
		{expression: "NOT pk = :k", want: "Invalid operator used in KeyConditionExpression: NOT"},
		{expression: "pk = :k AND NOT sk = :s", want: "Invalid operator used in KeyConditionExpression: NOT"},
		{expression: "NOT a = :k OR a = :s", want: "Invalid operator used in KeyConditionExpression: OR"},
		{expression: "pk = :k AND size(sk) = :n", want: "KeyConditionExpressions cannot contain nested operations"},
		{expression: "pk = :k AND sk = size(x)", want: "KeyConditionExpressions cannot contain nested operations"},
		{expression: "pk = :k AND sk BETWEEN :lo AND size(x)", want: "KeyConditionExpressions cannot contain nested operations"},
		{expression: "pk = :k AND (sk = :s OR sk = :k)", want: "Invalid operator used in KeyConditionExpression: OR"},
		{expression: "size(pk) <> :k", want: "Invalid operator used in KeyConditionExpression: <>"},
		{expression: "pk = if_not_exists(pk, :k)", want: "Invalid KeyConditionExpression: The function is not allowed in a condition expression; function: if_not_exists"},
	}},
	{"each condition is one key and values", []row{
		{expression: "pk = sk", want: "Invalid condition in KeyConditionExpression: Multiple attribute names used in one condition"},
		{expression: "pk = :k AND sk = pk", want: "Invalid condition in KeyConditionExpression: Multiple attribute names used in one condition"},
		{expression: "pk = :k AND sk = x", want: "Invalid condition in KeyConditionExpression: Multiple attribute names used in one condition"},
		{expression: "pk = :k AND sk BETWEEN x AND :s", want: "Invalid condition in KeyConditionExpression: Multiple attribute names used in one condition"},
		{expression: "pk = :k AND begins_with(sk, x)", want: "Invalid condition in KeyConditionExpression: Multiple attribute names used in one condition"},
		{expression: ":k = :k", want: "Invalid condition in KeyConditionExpression: No key attribute specified"},
		{expression: "pk = :k AND :k = :s", want: "Invalid condition in KeyConditionExpression: No key attribute specified"},
		{expression: "pk = :k AND :lo BETWEEN sk AND :s", want: "Invalid condition in KeyConditionExpression: BETWEEN operator must have the key attribute as its first operand"},
		{expression: "pk = :k AND begins_with(:s, sk)", want: "Invalid condition in KeyConditionExpression: begins_with operator must have the key attribute as its first operand"},
		{expression: "begins_with(:k, :s) AND pk = :k", want: "Invalid condition in KeyConditionExpression: begins_with operator must have the key attribute as its first operand"},
		{expression: "pk.x = :k", want: "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: Key: pk"},
		{expression: "pk = :k AND sk.x = :s", want: "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: Key: sk"},
		{expression: "pk = :k AND sk[0] = :s", want: "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: Key: sk"},
		{expression: "pk = x.y", want: "Invalid condition in KeyConditionExpression: Multiple attribute names used in one condition"},
		{expression: "x.y = :s", want: "KeyConditionExpressions cannot have conditions on nested attributes"},
		{expression: "pk = :k AND contains(sk, sk.x)", want: "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: Key: sk"},
		{expression: "pk = :k AND pk = sk.x", want: "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: Key: sk"},
	}},
	{"each key has one condition", []row{
		{expression: "pk = :k AND pk = :k", want: "KeyConditionExpressions must only contain one condition per key"},
		{expression: "pk = :k AND sk > :lo AND sk < :s", want: "KeyConditionExpressions must only contain one condition per key"},
		{expression: "pk = :k AND (sk > :lo AND sk < :s)", want: "KeyConditionExpressions must only contain one condition per key"},
		{expression: "pk = :k AND sk = :s AND x = :s", want: "Conditions can be of length 1 or 2 only"},
		{expression: "pk = :k AND sk > :s AND x = :s AND x = :s", want: "KeyConditionExpressions must only contain one condition per key"},
		{expression: "#p = :k AND pk = :k", want: "KeyConditionExpressions must only contain one condition per key"},
	}},
	{"the partition key must be there and equal", []row{
		{expression: "pk > :k", want: "Query key condition not supported"},
		{expression: "pk BETWEEN :k AND :s", want: "Query key condition not supported"},
		{expression: "begins_with(pk, :k)", want: "Query key condition not supported"},
		{expression: "sk > :s AND pk > :k", want: "Query key condition not supported"},
		{expression: "pk > :e", want: "Query key condition not supported"},
	}},
	{"values have the keys' types and are not empty", []row{
		{expression: "pk = :n", want: "One or more parameter values were invalid: Condition parameter type does not match schema type"},
		{expression: "pk = :ss", want: "One or more parameter values were invalid: Condition parameter type does not match schema type"},
		{expression: "pk = :m", want: "One or more parameter values were invalid: Condition parameter type does not match schema type"},
		{expression: "pk = :nul", want: "One or more parameter values were invalid: Condition parameter type does not match schema type"},
		{expression: "pk > :n", want: "One or more parameter values were invalid: Condition parameter type does not match schema type"},
		{expression: "pk = :k AND sk = :n", want: "One or more parameter values were invalid: Condition parameter type does not match schema type"},
		{expression: "pk = :k AND sk < :n", want: "One or more parameter values were invalid: Condition parameter type does not match schema type"},
		{expression: "pk = :k AND sk BETWEEN :one AND :n", want: "One or more parameter values were invalid: Condition parameter type does not match schema type"},
		{expression: "pk = :k AND sk = :b", want: "One or more parameter values were invalid: Condition parameter type does not match schema type"},
		{expression: "pk = :k AND begins_with(sk, :b)", want: "One or more parameter values were invalid: Condition parameter type does not match schema type"},
		{expression: "pk = :k AND begins_with(sk, :n)", want: "Invalid KeyConditionExpression: Incorrect operand type for operator or function; operator or function: begins_with, operand type: N"},
		{expression: "pk = :k AND sk < :ss", want: "Invalid KeyConditionExpression: Incorrect operand type for operator or function; operator or function: <, operand type: SS"},
		{expression: "pk = :k AND sk BETWEEN :s AND :lo", want: "Invalid KeyConditionExpression: The BETWEEN operator requires upper bound to be greater than or equal to lower bound; lower bound operand: AttributeValue: {S:x}, upper bound operand: AttributeValue: {S:a}"},
		{expression: "pk = :k AND sk BETWEEN :s AND :n", want: "Invalid KeyConditionExpression: The BETWEEN operator requires same data type for lower and upper bounds; lower bound operand: AttributeValue: {S:x}, upper bound operand: AttributeValue: {N:5}"},
		{expression: "pk = :e", want: "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: pk"},
		{expression: "pk = :k AND sk = :e", want: "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: sk"},
		{expression: "pk = :k AND sk > :e", want: "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: sk"},
		{expression: "pk = :k AND sk BETWEEN :e AND :s", want: "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: sk"},
		{expression: "pk = :k AND begins_with(sk, :e)", want: "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: sk"},
		{expression: "pk = :e AND sk = :n", want: "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: pk"},
		{expression: "pk = :e AND x = :s", want: "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: pk"},
	}},
	{"what is wrong with any condition is wrong here", []row{
		{expression: "", want: "Invalid KeyConditionExpression: The expression can not be empty;"},
		{expression: " ", want: `Invalid KeyConditionExpression: Syntax error; token: "<EOF>", near: " "`},
		{expression: "pk", want: `Invalid KeyConditionExpression: Syntax error; token: "<EOF>", near: "pk"`},
		{expression: "pk x :k", want: `Invalid KeyConditionExpression: Syntax error; token: "x", near: "pk x :k"`},
		{expression: "pk = :k, sk = :s", want: `Invalid KeyConditionExpression: Syntax error; token: ",", near: ":k, sk"`},
		{expression: "pk = :k AND sk", want: `Invalid KeyConditionExpression: Syntax error; token: "<EOF>", near: "sk"`},
		{expression: "name = :k", want: "Invalid KeyConditionExpression: Attribute name is a reserved keyword; reserved keyword: name"},
		{expression: "pk = :zz", want: "Invalid KeyConditionExpression: An expression attribute value used in expression is not defined; attribute value: :zz"},
		{expression: "#zz = :k", want: "Invalid KeyConditionExpression: An expression attribute name used in the document path is not defined; attribute name: #zz"},
		{expression: "pk = :k AND foo(sk)", want: "Invalid KeyConditionExpression: Invalid function name; function: foo"},
		{expression: "pk = pk", want: "Invalid KeyConditionExpression: The first operand must be distinct from the remaining operands for this operator or function; operator: =, first operand: [pk]"},
		{expression: "pk = :k AND begins_with(sk)", want: "Invalid KeyConditionExpression: Incorrect number of operands for operator or function; operator or function: begins_with, number of operands: 1"},
		{expression: "((pk = :k))", want: "Invalid KeyConditionExpression: The expression has redundant parentheses;"},
	}},
	{"the message says which key is missing", []row{
		{expression: "sk = :s", want: "Query condition missed key schema element: pk", local: "Query condition missed key schema element"},
		{expression: "x = :s", want: "Query condition missed key schema element: pk", local: "Query condition missed key schema element"},
		{expression: "sk = :n", want: "Query condition missed key schema element: pk", local: "Query condition missed key schema element"},
		{expression: "pk = :k AND x = :s", want: "Query condition missed key schema element: sk", local: "Query condition missed key schema element"},
		{expression: "x = :s AND pk = :k", want: "Query condition missed key schema element: sk", local: "Query condition missed key schema element"},
		{expression: "x = :s AND y = :s", want: "Query condition missed key schema element: pk", local: "Query condition missed key schema element"},
		{expression: "pk = :k AND begins_with(x, :s)", want: "Query condition missed key schema element: sk", local: "Query condition missed key schema element"},
		{expression: "pk = :k AND SK = :s", want: "Query condition missed key schema element: sk", local: "Query condition missed key schema element"},
		{expression: "pk = :n AND x = :s", want: "One or more parameter values were invalid: Condition parameter type does not match schema type"},
	}},
}

// numberKeys are key conditions for a table with a number as sort key.
var numberKeys = []group{
	{"numbers are compared by value", []row{
		{expression: "pk = :k", want: "-1 1 3 5 10"},
		{expression: "pk = :k AND sk = :n", want: "5"},
		{expression: "pk = :k AND sk > :three", want: "5 10"},
		{expression: "pk = :k AND sk < :three", want: "-1 1"},
		{expression: "pk = :k AND sk BETWEEN :one AND :n", want: "1 3 5"},
		{expression: "pk = :k AND sk = :s", want: "One or more parameter values were invalid: Condition parameter type does not match schema type"},
		{expression: "pk = :k AND begins_with(sk, :n)", want: "Invalid KeyConditionExpression: Incorrect operand type for operator or function; operator or function: begins_with, operand type: N"},
		{expression: "pk = :k AND begins_with(sk, :s)", want: "One or more parameter values were invalid: Condition parameter type does not match schema type"},
	}},
}

// binaryKeys are key conditions for a table with a binary as sort key.
var binaryKeys = []group{
	{"binaries are compared by their bytes", []row{
		{expression: "pk = :k", want: "0x61 0x6162 0x62"},
		{expression: "pk = :k AND sk = :b", want: "0x61"},
		{expression: "pk = :k AND sk > :b", want: "0x6162 0x62"},
		{expression: "pk = :k AND begins_with(sk, :b)", want: "0x61 0x6162"},
		{expression: "pk = :k AND sk = :eb", want: "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty binary value. Key: sk"},
		{expression: "pk = :k AND begins_with(sk, :eb)", want: "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty binary value. Key: sk"},
		{expression: "pk = :k AND sk = :s", want: "One or more parameter values were invalid: Condition parameter type does not match schema type"},
		{expression: "pk = :k AND begins_with(sk, :s)", want: "One or more parameter values were invalid: Condition parameter type does not match schema type"},
	}},
}

// noSortKey are key conditions for a table without a sort key.
var noSortKey = []group{
	{"without a sort key there is one condition", []row{
		{expression: "pk = :k AND sk = :s", want: "Query key condition not supported"},
		{expression: "pk = :k AND pk = :k", want: "KeyConditionExpressions must only contain one condition per key"},
		{expression: "sk = :s", want: "Query condition missed key schema element: pk", local: "Query condition missed key schema element"},
		{expression: "pk > :k", want: "Query key condition not supported"},
		{expression: "pk = :n AND x = :s", want: "Query key condition not supported"},
		{expression: "pk = :k AND x = :s AND y = :s", want: "Conditions can be of length 1 or 2 only"},
	}},
}
