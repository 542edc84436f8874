// Package dynamo creates tables, enables time to live, and classifies errors of the SDK.
package dynamo
