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

// defaultMemberName is the host name with the process id. Of a long host name the end is kept,
// which tells the instances of a deployment apart.
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
