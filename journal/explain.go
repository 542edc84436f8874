package journal

// Explain gives an error of the SDK the sentinels of this package, such as
// [ErrTableMissing]; the SDK's error stays in the chain. It is for packages that use
// other tables of the store.
func Explain(err error, table string) error { return classify(err, table) }
