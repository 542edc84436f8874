package subscriber

import (
	"os"
	"strconv"
	"strings"
)

// maxMemberName bounds a member's name, in bytes: names are part of the group's row, which is
// written with each heartbeat.
const maxMemberName = 32

// maxNamed is how many members of a group have names, so that these stay a small part of the row
// where members are many.
const maxNamed = 30

// defaultMemberName is the host name with the process id. A long host name is cut at its
// beginning, since the end differs between the instances of a deployment.
func defaultMemberName() string {
	host, err := os.Hostname()
	if err != nil {
		host = ""
	}
	return memberName(host, os.Getpid())
}

func memberName(host string, pid int) string {
	process := "/" + strconv.Itoa(pid)
	host = strings.ToValidUTF8(host, "?")
	if room := max(0, maxMemberName-len(process)); len(host) > room {
		host = strings.ToValidUTF8(host[len(host)-room:], "")
	}
	return host + process
}
