package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// draft is the version of JSON Schema that editors know best.
const draft = "http://json-schema.org/draft-07/schema#"

// allKinds is the name of the schema that chooses the kind's own by the field kind. It is the one
// for files with several documents.
const allKinds = "holdfast.json"

type object = map[string]any

// schemaFiles are the JSON schemas of kinds, by the name of the file.
func schemaFiles(kinds []*extensionsv1.CustomResourceDefinition) (map[string][]byte, error) {
	all := map[string][]byte{}
	var names, choices []any
	for _, kind := range kinds {
		schema, err := schemaOf(kind)
		if err != nil {
			return nil, fmt.Errorf("while making the schema of %s: %w", kind.Spec.Names.Kind, err)
		}
		file := kind.Spec.Names.Singular + ".json"
		if all[file], err = asJSON(schema); err != nil {
			return nil, err
		}
		names = append(names, kind.Spec.Names.Kind)
		choices = append(choices, object{
			"if":   object{"properties": object{"kind": object{"const": kind.Spec.Names.Kind}}},
			"then": object{"$ref": file},
		})
	}
	text, err := asJSON(object{
		"$schema":     draft,
		"description": "Any object of the kinds of Holdfast. Objects of other API groups, such as Secrets, pass.",
		"type":        "object",
		"required":    []any{"apiVersion", "kind"},
		"if":          object{"properties": object{"apiVersion": object{"pattern": "^holdfast\\.io/"}}},
		"then": object{
			"properties": object{"kind": object{"enum": names}},
			"allOf":      choices,
		},
	})
	all[allKinds] = text
	return all, err
}

// schemaOf is the JSON schema of a kind: that of its definition, in which an unknown field is an
// error.
func schemaOf(kind *extensionsv1.CustomResourceDefinition) (object, error) {
	version := kind.Spec.Versions[0]
	text, err := json.Marshal(version.Schema.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	var schema object
	if err := json.Unmarshal(text, &schema); err != nil {
		return nil, err
	}
	strict(schema)
	schema["$schema"] = draft
	schema["required"] = []any{"apiVersion", "kind", "metadata"}
	properties := schema["properties"].(object)
	properties["apiVersion"] = object{"const": kind.Spec.Group + "/" + version.Name}
	properties["kind"] = object{"const": kind.Spec.Names.Kind}
	properties["metadata"] = metadata(kind.Spec.Scope == extensionsv1.NamespaceScoped)
	if kind.Spec.Names.Kind == "StorageCluster" {
		allowBareOptions(properties)
	}
	return schema, nil
}

// strict makes a JSON schema of what a definition has: an object with given fields has no others,
// and what only an API server knows is left out.
func strict(schema object) {
	for key := range schema {
		if strings.HasPrefix(key, "x-kubernetes-") {
			delete(schema, key)
		}
	}
	if format := schema["format"]; format == "int32" || format == "int64" {
		delete(schema, "format")
	}
	if fields, has := schema["properties"].(object); has {
		schema["additionalProperties"] = false
		for _, field := range fields {
			strict(field.(object))
		}
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if inner, has := schema[key].(object); has {
			strict(inner)
		}
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		inner, _ := schema[key].([]any)
		for _, one := range inner {
			strict(one.(object))
		}
	}
}

// metadata is what people write of an object's metadata. The fields that API servers add may be
// there, too.
func metadata(namespaced bool) object {
	text := object{"type": "string"}
	texts := object{"type": "object", "additionalProperties": text}
	fields := object{
		"name": text, "generateName": text, "labels": texts, "annotations": texts,
		"finalizers": object{"type": "array", "items": text}, "ownerReferences": object{"type": "array"},
		"managedFields": object{"type": "array"}, "uid": text, "resourceVersion": text, "selfLink": text,
		"generation": object{"type": "integer"}, "creationTimestamp": object{"type": []any{"string", "null"}},
		"deletionTimestamp": text, "deletionGracePeriodSeconds": object{"type": "integer"},
	}
	if namespaced {
		fields["namespace"] = text
	}
	return object{
		"type": "object", "properties": fields, "additionalProperties": false,
		"anyOf": []any{object{"required": []any{"name"}}, object{"required": []any{"generateName"}}},
	}
}

// allowBareOptions allows numbers and booleans as values of Ceph's options: 'holdfast apply' makes
// texts of them.
func allowBareOptions(properties object) {
	value := properties
	for _, field := range []string{"spec", "ceph", "config"} {
		value = value[field].(object)
		if field != "config" {
			value = value["properties"].(object)
		}
	}
	value = value["additionalProperties"].(object)["additionalProperties"].(object)
	value["type"] = []any{"string", "number", "boolean"}
}

func asJSON(schema object) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	err := encoder.Encode(schema)
	return b.Bytes(), err
}
