package main

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// pageFiles are the reference pages of kinds, and their index, by the name of the file.
func pageFiles(kinds []*extensionsv1.CustomResourceDefinition) map[string][]byte {
	all := map[string][]byte{}
	for _, kind := range kinds {
		all[kind.Spec.Names.Singular+".md"] = page(kind)
	}
	all["README.md"] = index(kinds)
	return all
}

const generatedFrom = "<!-- Generated from api/v1alpha1 by hack/generate. -->\n\n"

// index is the page that lists the kinds.
func index(kinds []*extensionsv1.CustomResourceDefinition) []byte {
	var b bytes.Buffer
	b.WriteString(generatedFrom + "# Kinds\n\n")
	b.WriteString("The group is `holdfast.io/v1alpha1`. Each page has every field. `kubectl explain pool.spec` prints\n" +
		"the same text. [JSON schemas](../schemas.md) check a manifest in an editor.\n\n")
	b.WriteString("| kind | what | namespaced |\n|---|---|---|\n")
	for _, kind := range kinds {
		names := kind.Spec.Names
		namespaced := "yes"
		if kind.Spec.Scope == extensionsv1.ClusterScoped {
			namespaced = "no"
		}
		what, _, _ := strings.Cut(flat(root(kind).Description), ". ")
		fmt.Fprintf(&b, "| [%s](%s.md) | %s | %s |\n", names.Kind, names.Singular, strings.TrimSuffix(what, "."), namespaced)
	}
	return b.Bytes()
}

func root(kind *extensionsv1.CustomResourceDefinition) *extensionsv1.JSONSchemaProps {
	return kind.Spec.Versions[0].Schema.OpenAPIV3Schema
}

// page is the reference page of a kind.
func page(kind *extensionsv1.CustomResourceDefinition) []byte {
	var b bytes.Buffer
	names := kind.Spec.Names
	fmt.Fprintf(&b, "%s# %s\n\n", generatedFrom, names.Kind)
	b.WriteString(wrap(flat(root(kind).Description)) + "\n\n")
	other := append([]string{names.Plural, names.Singular}, names.ShortNames...)
	fmt.Fprintf(&b, "Names on the command line: `%s`.\n", strings.Join(other, "`, `"))
	for _, part := range parts(root(kind)) {
		var rows, rules []string
		for _, name := range part.fields {
			field := root(kind).Properties[name]
			walk(name, &field, false, &rows, &rules)
		}
		fmt.Fprintf(&b, "\n## %s\n%s", part.title, table("field | type | what", rows))
		b.WriteString(table("rule for | text of the refusal", rules))
	}
	return b.Bytes()
}

// part is a section of a page: the fields of the kind that it has.
type part struct {
	title  string
	fields []string
}

// parts are the sections of a kind's page: spec, status, and what is neither.
func parts(s *extensionsv1.JSONSchemaProps) (all []part) {
	others := part{title: "fields"}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		switch name {
		case "apiVersion", "kind", "metadata":
		case "spec", "status":
			all = append(all, part{name, []string{name}})
		default:
			others.fields = append(others.fields, name)
		}
	}
	if len(others.fields) > 0 {
		all = append(all, others)
	}
	return all
}

// table is a table with a head, or nothing without rows.
func table(head string, rows []string) string {
	if len(rows) == 0 {
		return ""
	}
	columns := strings.Repeat("---|", strings.Count(head, "|")+1)
	return fmt.Sprintf("\n| %s |\n|%s\n%s", head, columns, strings.Join(rows, ""))
}

// conditions is the row of the conditions, which are the same in each kind.
const conditions = "| `status.conditions` | list of conditions | See [conditions](../conditions.md). |\n"

// walk writes a row for a field and for each below it, and the rules of each.
func walk(path string, s *extensionsv1.JSONSchemaProps, required bool, rows, rules *[]string) {
	if path == "status.conditions" {
		*rows = append(*rows, conditions)
		return
	}
	if strings.Contains(path, ".") || len(s.Properties) == 0 {
		*rows = append(*rows, fmt.Sprintf("| `%s` | %s | %s |\n", path, typeText(s), what(s, required)))
	}
	*rules = append(*rules, rulesOf(path, s)...)
	inner := s
	if s.Items != nil && s.Items.Schema != nil {
		path, inner = path+"[]", s.Items.Schema
	}
	for inner.AdditionalProperties != nil && inner.AdditionalProperties.Schema != nil {
		path, inner = path+".KEY", inner.AdditionalProperties.Schema
	}
	if inner != s {
		*rules = append(*rules, rulesOf(path, inner)...)
	}
	for _, name := range slices.Sorted(maps.Keys(inner.Properties)) {
		field := inner.Properties[name]
		walk(path+"."+name, &field, slices.Contains(inner.Required, name), rows, rules)
	}
}

// rulesOf are the rows of the rules that an API server checks.
func rulesOf(path string, s *extensionsv1.JSONSchemaProps) (rows []string) {
	for _, rule := range s.XValidations {
		rows = append(rows, fmt.Sprintf("| `%s` | %s |\n", path, escape(flat(cmp.Or(rule.Message, rule.Rule)))))
	}
	return rows
}

// typeText is the type of a field, with what its values must be.
func typeText(s *extensionsv1.JSONSchemaProps) string {
	switch {
	case s.XIntOrString:
		return "quantity"
	case s.Items != nil && s.Items.Schema != nil:
		return "list of " + typeText(s.Items.Schema) + bounds(s.MinItems, s.MaxItems)
	case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		return "map to " + typeText(s.AdditionalProperties.Schema) + bounds(s.MinProperties, s.MaxProperties)
	case len(s.Enum) > 0:
		var values []string
		for _, value := range s.Enum {
			values = append(values, "`"+strings.Trim(string(value.Raw), `"`)+"`")
		}
		return strings.Join(values, ", ")
	case s.Type == "integer" && (s.Minimum != nil || s.Maximum != nil):
		return "integer" + bounds(whole(s.Minimum), whole(s.Maximum))
	case s.Format == "date-time":
		return "time"
	}
	return s.Type
}

func whole(f *float64) *int64 {
	if f == nil {
		return nil
	}
	n := int64(*f)
	return &n
}

func bounds(from, to *int64) string {
	switch {
	case from != nil && to != nil:
		return fmt.Sprintf(", %d to %d", *from, *to)
	case to != nil:
		return fmt.Sprintf(", at most %d", *to)
	case from != nil && *from > 0:
		return fmt.Sprintf(", at least %d", *from)
	}
	return ""
}

// what is the description of a field, with its default and pattern.
func what(s *extensionsv1.JSONSchemaProps, required bool) string {
	var parts []string
	if required {
		parts = append(parts, "**Required.**")
	}
	if s.Description != "" {
		parts = append(parts, escape(flat(s.Description)))
	}
	if s.Default != nil && string(s.Default.Raw) != "{}" {
		parts = append(parts, "Default: `"+escape(strings.Trim(string(s.Default.Raw), `"`))+"`.")
	}
	if s.Pattern != "" && !s.XIntOrString {
		parts = append(parts, "Pattern: `"+escape(s.Pattern)+"`.")
	}
	return strings.Join(parts, " ")
}

// flat is a text in one line.
func flat(s string) string { return strings.Join(strings.Fields(s), " ") }

// escape keeps a text from being taken for a cell's end or HTML.
func escape(s string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(s)
}

// wrap breaks a text into lines.
func wrap(s string) string {
	var b strings.Builder
	width := 0
	for _, word := range strings.Fields(s) {
		if width > 0 && width+1+len(word) > 115 {
			b.WriteByte('\n')
			width = 0
		} else if width > 0 {
			b.WriteByte(' ')
			width++
		}
		b.WriteString(word)
		width += len(word)
	}
	return b.String()
}
