package redact

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Object takes the values out of a Secret, and from any object what servers and kubectl note of its
// fields, which may repeat them.
func Object(u *unstructured.Unstructured) {
	u.SetManagedFields(nil)
	if notes := u.GetAnnotations(); len(notes) > 0 {
		delete(notes, "kubectl.kubernetes.io/last-applied-configuration")
		u.SetAnnotations(notes)
	}
	walk("", u.Object)
	if u.GetKind() != "Secret" {
		return
	}
	for _, field := range []string{"data", "stringData"} {
		values, _, _ := unstructured.NestedMap(u.Object, field)
		for name := range values {
			values[name] = Mark
		}
		if len(values) > 0 {
			_ = unstructured.SetNestedMap(u.Object, values, field) // the map was there
		}
	}
}

// references are names of fields of Holdfast's kinds that name a Secret, and hold none.
var references = map[string]bool{"secret": true, "keySecret": true, "secretName": true}

// walk takes out the values of fields with the names of secrets, however many lines they have.
func walk(name string, value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, field := range v {
			v[key] = walk(key, field)
		}
	case []any:
		for i, item := range v {
			v[i] = walk(name, item)
		}
	case string:
		if v != "" && Secret(name) && !references[name] {
			return Mark
		}
	}
	return value
}

// public are the entries of Secrets that are no secret, although they lie beside one.
var public = map[string]bool{"fsid": true, "monHost": true, "userID": true, "ca.crt": true, "tls.crt": true}

var (
	keyLine = regexp.MustCompile(`(?m)^\s*key\s*=\s*(\S+)`)
	pemLine = regexp.MustCompile(`(?m)^[A-Za-z0-9+/=]{16,}$`)
)

// Values are the secrets in the entries of a Secret: each entry as a whole, the keys of a keyring,
// and the lines of a private key.
func Values(data map[string][]byte) (all []string) {
	for name, value := range data {
		text := strings.TrimSpace(string(value))
		if public[name] {
			continue
		}
		all = append(all, text)
		for _, key := range keyLine.FindAllStringSubmatch(text, -1) {
			all = append(all, key[1])
		}
		if strings.Contains(text, "PRIVATE KEY") {
			all = append(all, pemLine.FindAllString(text, -1)...)
		}
	}
	return all
}
