package kube

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// RefuseRepeatedKeys refuses a file in which a map has a key twice: the last one would count, without a
// word. Other faults are found when the file is read.
func RefuseRepeatedKeys(data []byte, file string) error {
	for _, document := range inPlace(data) {
		_, err := yaml.YAMLToJSONStrict(document)
		if err == nil || mergesMaps.Match(document) {
			continue
		}
		if found := repeatedKey.FindStringSubmatch(err.Error()); found != nil {
			return fmt.Errorf("%s, line %d: the key %s occurs twice: remove one of them",
				file, lineOfKey(document, found[1], found[2]), found[2])
		}
	}
	return nil
}

// mergesMaps finds a map that takes over another one (<<). Its own keys count before those, as is
// meant, and the library takes both for a repeated key.
var mergesMaps = regexp.MustCompile(`(?m)(^|[\s{,])["']?<<["']?\s*:`)

// repeatedKey is how the YAML library tells of it.
var repeatedKey = regexp.MustCompile(`line (\d+): key ("(?:[^"\\]|\\.)*"|\S+) already set in map`)

// lineOfKey is where a key stands whose value begins in a line: there, or above where the value is a map of its own.
func lineOfKey(document []byte, value, key string) int {
	number, err := strconv.Atoi(value)
	lines := strings.Split(string(document), "\n")
	if err != nil || number > len(lines) {
		return number
	}
	is := regexp.MustCompile(`(^|[\s{,"'])` + regexp.QuoteMeta(strings.Trim(key, `"`)) + `["']?\s*:`)
	for n := number; n > 0; n-- {
		if is.MatchString(lines[n-1]) {
			return n
		}
	}
	return number
}

// inPlace are the documents of a file, each after as many empty lines as it stands below, so that
// its lines have the numbers that they have in the file.
func inPlace(data []byte) [][]byte {
	var all [][]byte
	lines := bytes.SplitAfter(data, []byte("\n"))
	begin := 0
	end := func(n int) {
		if n > begin {
			all = append(all, append([]byte(strings.Repeat("\n", begin)), bytes.Join(lines[begin:n], nil)...))
		}
		begin = n + 1
	}
	for n, line := range lines {
		if bytes.HasPrefix(line, []byte("---")) {
			end(n)
		}
	}
	end(len(lines))
	return all
}
