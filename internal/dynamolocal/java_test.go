package dynamolocal

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestJavaVersionIsReadFromWhatJavaPrints(t *testing.T) {
	t.Parallel()
	for out, want := range map[string]int{
		"openjdk version \"17.0.15\" 2025-04-15\nOpenJDK Runtime Environment (build 17.0.15+6)": 17,
		"openjdk version \"21\" 2023-09-19":                                                     21,
		"openjdk version \"25-ea\" 2025-09-16":                                                  25,
		"java version \"1.8.0_392\"\nJava(TM) SE Runtime Environment":                           8,
		"java version \"11.0.2\" 2019-01-15 LTS":                                                11,
		"Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version \"17.0.9-internal\"":              17,
		"openjdk version \"17.0.1\"\r\nOpenJDK Runtime Environment\r\n":                         17,
	} {
		got, ok := parseJavaVersion(out)
		assert.True(t, ok, "%q tells a version", out)
		assert.Equal(t, want, got, "%q", out)
	}
	for _, out := range []string{
		"",
		"The operation couldn't be completed. Unable to locate a Java Runtime.",
		"openjdk version seventeen",
		"openjdk version \"99999999999999999999\"",
	} {
		_, ok := parseJavaVersion(out)
		assert.False(t, ok, "%q tells no version", out)
	}
}
