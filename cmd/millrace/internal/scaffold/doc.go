// Package scaffold writes a new service: the command "millrace init". The folder template has the
// files, which are packages of this module, so they are compiled and tested like all others. Of the
// folders fargate and lambda, a service gets one.
package scaffold
