// Package infra writes the tables of an application, and the policies of its programs, as
// documents: Terraform, CloudFormation and IAM. The tables are those that Create of each package
// makes; the policies are those of package permissions. A document can also have a function of
// Lambda that works in bursts.
package infra
