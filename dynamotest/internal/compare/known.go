package compare

// Known is a difference that is DynamoDB Local's own fault.
type Known struct {
	Name string

	// Reference is the AWS documentation that says what DynamoDB does.
	Reference string

	// Is tells whether a difference is this one, and no more than this one. Left is DynamoDB Local.
	Is func(d Difference) bool
}

// known are the differences that are not held against dynamotest.
var known = []Known{
	{
		Name: "an internal failure",
		Reference: "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html: " +
			"a 5xx status is a problem of the service, not an answer to the request",
		Is: func(d Difference) bool { return d.Left.Code() == "InternalFailure" },
	},
}

// explained returns the known difference that d is.
func explained(d Difference) (Known, bool) {
	for _, k := range known {
		if k.Is(d) {
			return k, true
		}
	}
	return Known{}, false
}
