"""mercer"""
