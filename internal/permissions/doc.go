// Package permissions holds the permissions of IAM that programs need.
//
// A [Program] is a row of the table in the documentation, such as "Load". A [Role] is a set of
// programs that run with the same credentials. `millrace schema --format iam` prints the policy of
// a role. Tests compare the documentation with the programs, and run programs with the policies.
package permissions
