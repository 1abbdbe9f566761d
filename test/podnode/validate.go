package podnode

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// strict reads an object, and refuses what it does not know.
func strict(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// validate refuses of what the API server refuses that which makers of pods for daemons may come
// to.
func validate(pod *corev1.Pod) error {
	var errs []error
	add := func(what string, problems []string) {
		for _, p := range problems {
			errs = append(errs, fmt.Errorf("%s: %s", what, p))
		}
	}
	add("metadata.name", validation.IsDNS1123Subdomain(pod.Name))
	add("metadata.namespace", validation.IsDNS1123Label(pod.Namespace))
	for _, e := range metav1.ValidateLabels(pod.Labels, field.NewPath("metadata", "labels")) {
		errs = append(errs, e)
	}
	for key := range pod.Annotations {
		add("metadata.annotations", validation.IsQualifiedName(key))
	}
	for _, o := range pod.OwnerReferences {
		if o.APIVersion == "" || o.Kind == "" || o.Name == "" || o.UID == "" {
			errs = append(errs, fmt.Errorf("metadata.ownerReferences: %+v is not whole", o))
		}
	}
	if pod.Spec.HostPID && ptr.Deref(pod.Spec.ShareProcessNamespace, false) {
		errs = append(errs, errors.New("spec: shareProcessNamespace and hostPID cannot both be set"))
	}
	if len(pod.Spec.Containers) == 0 {
		errs = append(errs, errors.New("spec.containers: none"))
	}
	volumes := map[string]bool{}
	for _, v := range pod.Spec.Volumes {
		add("spec.volumes", validation.IsDNS1123Label(v.Name))
		if volumes[v.Name] || v.HostPath == nil {
			errs = append(errs, fmt.Errorf("spec.volumes: %s is there twice, or is no host path", v.Name))
		}
		volumes[v.Name] = true
	}
	for i := range pod.Spec.Containers {
		errs = append(errs, validateContainer(&pod.Spec.Containers[i], volumes)...)
	}
	return errors.Join(errs...)
}

func validateContainer(c *corev1.Container, volumes map[string]bool) (errs []error) {
	for _, problem := range validation.IsDNS1123Label(c.Name) {
		errs = append(errs, errors.New("spec.containers.name: "+problem))
	}
	if c.Image == "" {
		errs = append(errs, errors.New("spec.containers.image: none"))
	}
	s := c.SecurityContext
	privileged := s != nil && ptr.Deref(s.Privileged, false)
	if privileged && !ptr.Deref(s.AllowPrivilegeEscalation, true) {
		errs = append(errs, errors.New("spec.containers.securityContext: privileged without escalation"))
	}
	paths := map[string]bool{}
	for _, m := range c.VolumeMounts {
		if !volumes[m.Name] || paths[m.MountPath] {
			errs = append(errs, fmt.Errorf("spec.containers.volumeMounts: %s has no volume, or is there twice", m.MountPath))
		}
		paths[m.MountPath] = true
		if ptr.Deref(m.MountPropagation, "") == corev1.MountPropagationBidirectional && !privileged {
			errs = append(errs, errors.New("spec.containers.volumeMounts: Bidirectional is for privileged containers"))
		}
	}
	return errs
}
