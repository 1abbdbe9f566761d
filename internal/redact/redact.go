// Package redact takes secrets out of texts that leave the site: objects, logs, and what storage
// systems print. It is pure. What it is not sure of it takes out.
package redact

import (
	"cmp"
	"encoding/base64"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Mark stands in the place of a secret.
const Mark = "[redacted]"

// shortest is how long a value is at least that is looked for everywhere: a shorter one is part of
// other words.
const shortest = 6

// Redactor takes secrets out of texts. It is safe for concurrent use.
type Redactor struct{ known *strings.Replacer }

// New knows values that are secret wherever they stand, beside what looks like a secret.
func New(values []string) *Redactor {
	var all []string
	for _, v := range values {
		if len(v) < shortest {
			continue
		}
		all = append(all, v, base64.StdEncoding.EncodeToString([]byte(v)), url.QueryEscape(v))
	}
	// The longest is replaced before the others, so that a part of a secret does not leave the rest
	// of it behind.
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	var pairs []string
	for _, v := range slices.Compact(all) {
		pairs = append(pairs, v, Mark)
	}
	return &Redactor{strings.NewReplacer(pairs...)}
}

// Text is a text without secrets.
func (r *Redactor) Text(text string) string {
	text = r.known.Replace(text)
	for _, p := range shapes {
		text = p.found.ReplaceAllString(text, p.by)
	}
	text = flatObject.ReplaceAllStringFunc(text, withoutValue)
	return assignment.ReplaceAllStringFunc(text, withoutAssigned)
}

// shapes are what secrets look like, wherever they stand.
var shapes = []struct {
	found *regexp.Regexp
	by    string
}{
	// A private key, also with escaped or indented lines, and one of which the end or the beginning
	// is cut off.
	{regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)`), Mark},
	{regexp.MustCompile(`(?m)(^[^\n]*[A-Za-z0-9+/=]{20,}[ \t]*\n)+[^\n]*-----END [A-Z0-9 ]*PRIVATE KEY-----`), Mark},
	// A key of Ceph: 1 or 2 as its type, and a time.
	{regexp.MustCompile(`\bA[Qg][A-D][A-Za-z0-9+/]{35,80}={0,2}`), Mark},
	// A token of Holdfast, and a JSON Web Token.
	{regexp.MustCompile(`\bhf1\.[A-Za-z0-9_-]{8,}`), Mark},
	{regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(\.[A-Za-z0-9_-]*)?`), Mark},
	// A URL with a password, and headers of HTTP.
	{regexp.MustCompile(`(://[^/\s:@]*:)[^/\s@]+@`), "${1}" + Mark + "@"},
	{regexp.MustCompile(`(?i)(authorization["']?\s*[:=]\s*["']?)[^\n"']+`), "${1}" + Mark},
	{regexp.MustCompile(`(?i)\b(bearer\s+)[A-Za-z0-9._~+/=-]{8,}`), "${1}" + Mark},
}

var (
	// secretName are words in the names of secrets.
	secretName = regexp.MustCompile(`(?i)passw(or)?d|passphrase|secret|token|credential|jwt|identity[_-]?key|` +
		`(private|access|api|user|admin|encryption|sts|hmac|luks|client)[_-]?keys?\b|client-key-data|keyring-data`)
	// settingName are names beside a secret's that hold none.
	settingName = regexp.MustCompile(`(?i)(_|-|\b)(name|ref|file|path|dir|ttl|timeout|time|expiry|expiration|` +
		`interval|size|length|len|type|method|enabled|count|url|addr|address|format|policy|` +
		`engine|renew|cache|verify|ssl)s?$|` +
		`(Name|Ref|File|Path)$`)
	// optionName are the last parts of the names of Ceph's options and entries that hold a secret
	// under a plain name, such as mgr/dashboard/key.
	optionName = regexp.MustCompile(`(?i)(^|[/_.])(keys?|crt|cert|pem)$`)
)

// Secret says whether a secret may have this name.
func Secret(name string) bool { return secretName.MatchString(name) && !settingName.MatchString(name) }

// Option is Secret for an option or entry of Ceph.
func Option(name string) bool { return Secret(name) || optionName.MatchString(name) }

var (
	// flatObject is an object of JSON in which is no other one, as commands of Ceph are in its
	// logs; its quotes may be escaped.
	flatObject = regexp.MustCompile(`\{[^{}]*"(?:value|val)\\*"[^{}]*\}`)
	nameIn     = regexp.MustCompile(`"(?:name|key|option)\\*"\s*:\s*\\*"([^"\\]*)\\*"`)
	valueIn    = regexp.MustCompile(`("(?:value|val)"\s*:\s*")(?:[^"\\]|\\.)*(")`)
	escapedIn  = regexp.MustCompile(`("(?:value|val)\\+"\s*:\s*\\+").*?(\\+")`)
)

// withoutValue takes the value out of an object that names an option: of ones that hold a secret,
// and of each entry of the store of keys.
func withoutValue(object string) string {
	name := nameIn.FindStringSubmatch(object)
	if name == nil || !Option(name[1]) && !strings.Contains(object, `"config-key `) {
		return object
	}
	object = escapedIn.ReplaceAllString(object, "${1}"+Mark+"${2}")
	return valueIn.ReplaceAllString(object, "${1}"+Mark+"${2}")
}

// assignment is NAME=VALUE, NAME: VALUE or "NAME": "VALUE"; the quotes may be escaped.
var assignment = regexp.MustCompile(`([A-Za-z0-9_./-]+)(\\*["']?[ \t]*[:=][ \t]*)` +
	`("(?:[^"\\\n]|\\.)*"|'[^'\n]*'|\\+".*?\\+"|[^\s,;"'\[\]{}()\\][^\s,;"'}\])]*)`)

// withoutAssigned takes out the value of a name that a secret has, and looks for others in a quoted
// one.
func withoutAssigned(text string) string {
	p := assignment.FindStringSubmatch(text)
	name, sign, value := p[1], p[2], p[3]
	inner := strings.Trim(value, `"'\`)
	quote := value[:strings.Index(value, inner)]
	switch {
	case inner == "" || slices.Contains([]string{"null", "true", "false", "|", ">", "|-", ">-"}, inner):
		return text
	case Secret(name):
		return name + sign + quote + Mark + quote
	case quote != "":
		return name + sign + quote + assignment.ReplaceAllStringFunc(value[len(quote):], withoutAssigned)
	}
	return text
}
