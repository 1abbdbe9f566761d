package instance

import (
	"slices"
	"strings"
	"unicode"
)

// placeholders are what makers of boards leave in the firmware where an id belongs, without case
// and without what is neither letter nor digit. Many boards have the same.
var placeholders = []string{
	"defaultstring", "tobefilledbyoem", "tobefilled", "oem", "oemserial", "systemserialnumber", "baseboardserialnumber",
	"chassisserialnumber", "serialnumber", "serial", "sernumber", "serno", "mbserial", "notspecified", "notapplicable",
	"notavailable", "notset", "none", "null", "na", "unknown", "undefined", "invalid", "empty", "blank", "default", "sample",
	"0123456789", "1234567890", "123456789", "12345678", "1234567", "0123456789abcdef",
	// UUIDs that boards were sold with by the thousand.
	"03000200040005000006000700080009", "00020003000400050006000700080009", "12345678123456781234567812345678",
	"12345678123456789012123456789012", "123456781234567890abcddeefaabbcc", "0123456789abcdef0123456789abcdef",
}

// isPlaceholder says whether a name=value of the firmware tells no board from another.
func isPlaceholder(part string) bool {
	_, value, _ := strings.Cut(part, "=")
	value = strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, value)
	// All zeros, all f, or nothing but dots.
	return len(value) < 2 || strings.Trim(value, value[:1]) == "" || slices.Contains(placeholders, value)
}
