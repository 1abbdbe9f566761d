// Package classes makes the StorageClasses of the CSI driver: one for each Pool of images, each
// Filesystem and each GlusterFS cluster, when the cluster is ONLINE, and the Clients and Secrets
// whose keys the driver uses.
//
// Decide is pure: it compares what there is with what there should be. Run reads, has Decide
// decide, and writes. It has no state of its own, so it can be ended at any write. All that it makes
// has the label LabelClass, and the annotation AnnotationOf says for what; of other objects it
// changes nothing.
//
// The steps of a new class follow from each other, each in a look of its own: the Clients, which the
// engine gives keys; the Secrets with these keys; and the class. Away they go in the other order,
// and the keys stay while a PersistentVolume names them.
package classes

const (
	// LabelClass is on what Run makes.
	LabelClass = "holdfast.io/class"
	// AnnotationOf says what it was made for: kind, namespace and name, such as Pool/storage/volumes.
	AnnotationOf = "holdfast.io/class-of"
	// annotationDefault has Kubernetes take a class for claims that name none.
	annotationDefault = "storageclass.kubernetes.io/is-default-class"
)
