"""The machines: scikit-learn estimators that see data only through kernel products."""
